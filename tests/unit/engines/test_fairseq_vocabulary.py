"""Vocabularies of converted models: how words become pieces, and where a word ends on the way out."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from refusals import refused

from smt.models.bundle import load_model, save_model
from smt.models.decode import decode_batch, decode_stream
from smt.models.transformer import ModelConfig, Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import UNK
from smt.models.vocab_bpe import SPECIAL, BpeVocabulary, Cutting, unescape
from smt.policies.waitk import FULL, Schedule
from sqa.core.errors import ConfigError, DataError

CODES = b"#version: 0.2\no w</w>\nl ow</w>\nn e\nne w</w>\n"
TEXT = "low lower new newest a1 lowlow"


def vocabulary(symbols: str, cutting: Cutting, source: str | None = None) -> BpeVocabulary:
    target = (*SPECIAL, *symbols.split())
    return BpeVocabulary(target if source is None else (*SPECIAL, *source.split()), target, cutting)


def test_whole_words() -> None:
    v = vocabulary("the red house 1", Cutting(), source="el rojo la casa")
    assert (v.size, v.source_size) == (8, 8)
    assert v.words(["la", "casa", "verde"]) == ([6, 7, UNK], [0, 1, 2])
    assert v.decode_word([5]) == "red" and v.decode_word([UNK]) == ""
    assert v.starts_word.tolist() == [False] * 4 + [True] * 4 and not v.joins_next.any()
    assert v.has_digit.tolist() == [False] * 7 + [True]


def test_the_file_gives_the_vocabulary_back(tmp_path: Path) -> None:
    for source in (None, "x y"):
        v = vocabulary("a b c", Cutting(), source)
        (tmp_path / v.FILE).write_bytes(v.model)
        again = BpeVocabulary.load(tmp_path / v.FILE)
        assert (again.source, again.target, again.cutting) == (v.source, v.target, v.cutting)
    for content in (b"{}", b"no json", b'{"format": 2}', v.model.replace(b"<unk>", b"<UNK>")):
        (tmp_path / v.FILE).write_bytes(content)
        with pytest.raises(DataError):
            BpeVocabulary.load(tmp_path / v.FILE)


def test_sentencepiece_symbols_spell_words_and_bytes() -> None:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([TEXT]), model_writer=model, vocab_size=20, model_type="bpe", minloglevel=2
    )
    v = vocabulary("▁lo w ▁ <0xC3> <0xB1> ▁new", Cutting("sentencepiece", model.getvalue()))
    assert v.decode_word([4, 5]) == "low"
    assert v.decode_word([6, 5, 7, 8]) == "wñ"
    assert v.decode_word([6, 7]) == ""  # half a character
    assert v.starts_word[4:].tolist() == [True, False, True, False, False, True] and not v.joins_next.any()


@pytest.mark.parametrize(
    ("bpe", "codes", "message"),
    [("wordpiece", b"x", "bpe: must be one of"), ("none", b"x", "no file fits"), ("sentencepiece", b"", "is needed")],
)
def test_options_that_do_not_fit_are_refused(bpe: str, codes: bytes, message: str) -> None:
    refused(ConfigError, message, Cutting, bpe, codes)


@pytest.mark.parametrize(("codes", "line"), [(b"a b\nabc\n", 2), (b"a b c\n", 1)])
def test_invalid_codes_are_refused(codes: bytes, line: int) -> None:
    refused(DataError, f"codes, line {line}: two symbols expected", vocabulary, "a", Cutting("subword-nmt", codes))
    refused(DataError, "not a SentencePiece model", vocabulary, "a", Cutting("sentencepiece", codes))


def test_subword_nmt_codes_cut_words_as_the_package_does() -> None:
    bpe = pytest.importorskip("subword_nmt.apply_bpe").BPE(io.StringIO(CODES.decode()))
    pieces = bpe.process_line(TEXT).split()
    v = vocabulary(" ".join(sorted(set(pieces))), Cutting("subword-nmt", CODES))
    ids, index = v.words(TEXT.split())
    assert [v.source[i] for i in ids] == pieces
    words = [[i for i, at in zip(ids, index, strict=True) if at == n] for n in range(len(TEXT.split()))]
    assert [v.decode_word(word) for word in words] == TEXT.split()
    assert {v.target[i] for i in v.joins_next.nonzero()[0]} == {p for p in pieces if p.endswith("@@")}


def test_words_end_after_a_piece_that_does_not_go_on(tmp_path: Path) -> None:
    pytest.importorskip("subword_nmt")
    symbols = " ".join(f"{a}{b}" for a in "abcdefgh" for b in ("", "@@", "x", "x@@"))
    v = vocabulary(symbols, Cutting("subword-nmt", CODES))
    torch.manual_seed(2)
    model = Transformer(ModelConfig(v.size, 16, 4, 32, 2, 2, 0.0, lexicon_width=0, decoder_start="eos"))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model, v, _ = load_model(save_model(model, v, tmp_path / "model", {}, quantised=False))
    groups: list[list[str]] = []
    spell = v.decode_word
    v.decode_word = lambda ids: groups.append([v.target[i] for i in ids]) or spell(ids)
    sentences = ["a b c d".split(), "hx g".split(), "e f g h a b".split()]
    for k in (1, 3, FULL):
        writer, schedule = TransformerWriter(model, v), Schedule(k)
        batched = [[word.token for word in row] for row in decode_batch(writer, sentences, schedule)]
        assert batched == [list(decode_stream(writer, iter(words), schedule)) for words in sentences]
    assert len(groups) > 20 and any(len(group) > 1 for group in groups)
    for group in groups:
        assert all(piece.endswith("@@") for piece in group[:-1])
    assert sum(group[-1].endswith("@@") for group in groups) <= 2 * 3 * len(sentences)  # where the end came first


def test_moses_punctuation_is_split_off_and_attached_again() -> None:
    pytest.importorskip("sacremoses")
    words = "¿ Qué casa , ( 1999 ) &quot; d &apos; Artagnan &apos;s @-@ a".split()
    v = vocabulary(" ".join(words), Cutting(moses="es"))
    ids, index = v.words(["¿Qué", "casa,", "(1999)", "d'Artagnan"])
    assert [v.source[i] for i in ids] == "¿ Qué casa , ( 1999 ) d &apos; Artagnan".split()
    assert index == [0, 0, 1, 1, 2, 2, 2, 3, 3, 3]
    number = {symbol: i + len(SPECIAL) for i, symbol in enumerate(words)}
    assert [s for s in words if not v.starts_word[number[s]]] == [",", ")", "&apos;s", "@-@"]
    assert [s for s in words if v.joins_next[number[s]]] == ["¿", "(", "@-@"]
    assert v.decode_word([number["("], number["1999"], number[")"], number[","]]) == "(1999),"
    assert v.decode_word([number["a"], number["@-@"], number["a"], number["&apos;s"]]) == "a-a's"


def test_escapes_are_undone_once() -> None:
    assert unescape("&amp;quot; &#91;x&#93; a @-@ b &lt;&#124;&gt;") == "&quot; [x] a - b <|>"
