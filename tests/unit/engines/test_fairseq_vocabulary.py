"""Vocabularies of converted models: word segmentation and word ends in the output."""

import io
from pathlib import Path

import pytest
from refusals import refused

from smt.models.vocab import UNK
from smt.models.vocab_bpe import SPECIAL, BpeVocabulary, Cutting, unescape
from sqa.core import ConfigError, DataError

CODES = b"#version: 0.2\no w</w>\nl ow</w>\nn e\nne w</w>\n"
TEXT = "low lower new newest a1 lowlow"


def vocabulary(symbols: str, cutting: Cutting, source: str | None = None) -> BpeVocabulary:
    target = (*SPECIAL, *symbols.split())
    return BpeVocabulary(target if source is None else (*SPECIAL, *source.split()), target, cutting)


def test_whole_words_are_single_pieces() -> None:
    v = vocabulary("the red house 1", Cutting(), source="el rojo la casa")
    assert (v.size, v.source_size) == (8, 8)
    assert v.words(["la", "casa", "verde"]) == ([6, 7, UNK], [0, 1, 2])
    assert v.decode_word([5]) == "red" and v.decode_word([UNK]) == ""
    assert v.starts_word.tolist() == [False] * 4 + [True] * 4 and not v.joins_next.any()
    assert v.has_digit.tolist() == [False] * 7 + [True]


def test_vocabulary_file_round_trips(tmp_path: Path) -> None:
    for source in (None, "x y"):
        v = vocabulary("a b c", Cutting(), source)
        (tmp_path / v.FILE).write_bytes(v.model)
        again = BpeVocabulary.load(tmp_path / v.FILE)
        assert (again.source, again.target, again.cutting) == (v.source, v.target, v.cutting)
    for content in (b"{}", b"no json", b'{"format": 2}', v.model.replace(b"<unk>", b"<UNK>")):
        (tmp_path / v.FILE).write_bytes(content)
        refused(DataError, "vocabulary.json: ", BpeVocabulary.load, tmp_path / v.FILE)


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


def test_mismatched_options_and_codes_are_refused() -> None:
    refused(ConfigError, "bpe: must be one of", Cutting, "wordpiece", b"x")
    refused(ConfigError, "codes: must be omitted for bpe 'none'", Cutting, "none", b"x")
    refused(ConfigError, "codes: must be a file for bpe 'sentencepiece'", Cutting, "sentencepiece", b"")
    refused(DataError, "codes, line 2: expected two symbols", vocabulary, "a", Cutting("subword-nmt", b"a b\nabc\n"))
    refused(DataError, "not a SentencePiece model", vocabulary, "a", Cutting("sentencepiece", b"a b c\n"))


@pytest.mark.needs("fairseq")
def test_subword_codes_segment_like_subword_nmt() -> None:
    from subword_nmt.apply_bpe import BPE

    bpe = BPE(io.StringIO(CODES.decode()))
    pieces = bpe.process_line(TEXT).split()
    v = vocabulary(" ".join(sorted(set(pieces))), Cutting("subword-nmt", CODES))
    ids, index = v.words(TEXT.split())
    assert [v.source[i] for i in ids] == pieces
    words = [[i for i, at in zip(ids, index, strict=True) if at == n] for n in range(len(TEXT.split()))]
    assert [v.decode_word(word) for word in words] == TEXT.split()
    assert {v.target[i] for i in v.joins_next.nonzero()[0]} == {p for p in pieces if p.endswith("@@")}


@pytest.mark.needs("fairseq")
def test_moses_punctuation_is_split_and_reattached() -> None:
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
    assert unescape("&amp;quot; &#91;x&#93; a @-@ b &lt;&#124;&gt;") == "&quot; [x] a - b <|>"
