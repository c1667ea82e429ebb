"""Decoding with a language model: streamed and batched words, refused options, and scores of given words."""

import pytest
import torch
from refusals import refused
from smt_models import streamed
from stand_ins.lm_models import adapter, make
from tables import tables_of

from smt.lm import word_scores
from smt.lm.base import load_base
from smt.lm.causal_lm import CausalLmConfig, build
from smt.lm.lm_stepper import LmWriter
from smt.lm.network import mask_of
from smt.lm.tokenizer import OFFSET, Layout
from smt.lm.word_scores import LmScorer
from smt.models.decode import decode_batch, decode_stream
from smt.policies.waitk import FULL, Schedule
from sqa.core import ConfigError

TABLES = tables_of(__file__)

SENTENCES = TABLES["sentences"]
SCHEDULES = [Schedule(1), Schedule(3), Schedule(FULL), Schedule(2, 0.6), Schedule(2, 1.4)]


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    base = load_base(make(tmp_path_factory.mktemp("base"), "gemma3_text", seed=3))
    layout = Layout.of(base.tokens, "es", "en")
    return LmWriter.of(base, layout, torch.arange(4, base.tokens.size))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_streamed_and_batched_words_and_g_are_equal(writer, schedule):
    batched = decode_batch(writer, SENTENCES, schedule)
    assert streamed(lambda source: decode_stream(writer, source, schedule), SENTENCES) == batched
    assert any(len(written) > 2 for written in batched)
    for sentence, written in zip(SENTENCES, batched, strict=True):
        for j, word in enumerate(written, 1):
            assert word.g >= min(schedule.k + int((j - 1) / schedule.rate), len(sentence))
            assert word.token and not any(c.isspace() for c in word.token)
            assert word.ended <= (word.g == len(sentence))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make(tmp_path_factory.mktemp("gemma"), "gemma3_text", seed=3)


@pytest.fixture
def built(folder, tmp_path):
    """Return a function that builds a translator with a randomly initialized bidirectional adapter."""
    path = adapter(folder, tmp_path / "adapter", 7, bidirectional=True)

    def of(**options):
        return build(CausalLmConfig(str(path), dtype="float32", **options))

    return of


def test_bidirectional_source_is_read_first(built):
    plain, bidirectional = built(), built(bidirectional=True)
    together = decode_batch(bidirectional.writer, SENTENCES, Schedule(FULL))
    assert together != decode_batch(plain.writer, SENTENCES, Schedule(FULL))
    assert streamed(bidirectional.translate, SENTENCES) == together
    assert all(word.g == len(s) for s, written in zip(SENTENCES, together, strict=True) for word in written)
    assert [decode_batch(bidirectional.writer, [s], Schedule(FULL))[0] for s in SENTENCES] == together


@pytest.mark.parametrize(("config", "message"), TABLES["unavailable_options_give_a_one_line_error"])
def test_unavailable_options_give_a_one_line_error(folder, tmp_path, config, message):
    path = adapter(folder, tmp_path / "adapter", 1)
    filled = {key: v.format(folder=folder, adapter=path) if isinstance(v, str) else v for key, v in config.items()}
    refused(ConfigError, message, lambda: build(CausalLmConfig(**filled)))


SOURCE = tuple("el perro grande".split())
TARGET = tuple("the big dog Łódź".split())


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    base = load_base(make(tmp_path_factory.mktemp("base"), "gemma3_text", seed=3))
    layout = Layout.of(base.tokens, "es", "en")
    pieces = torch.tensor([i for i in range(4, base.tokens.size) if i not in base.tokens.text(" big")])
    writer = LmWriter.of(base, layout, pieces)
    return LmScorer(lambda: writer, "f")


def plain(scorer, source, target):
    """Return ln p of every word, and by how much ln p of the most likely pieces exceeds it.

    Each piece takes one forward pass, with a softmax over the candidates and the piece itself.
    """
    w = scorer.writer
    before, _ = w.layout.source(w.tokens, source)
    asked, given, short = list(w.layout.asking), [], []
    for word in target:
        total = less = 0.0
        for piece in w.tokens.word(word):
            n = len(before) + len(asked)
            positions = [*range(len(before)), *(OFFSET + i for i in range(len(asked)))]
            own = mask_of(torch.ones(1, n, n, dtype=torch.bool).tril(), torch.float32)
            states = w.model(torch.tensor([[*before, *asked]]), torch.tensor([positions]), own)
            choice = sorted({*w.pieces.tolist(), piece})
            scores = (w.model.output_rows(torch.tensor(choice)) @ states[0, -1]).log_softmax(0)
            total += float(scores[choice.index(piece)])
            less += float(scores.max() - scores[choice.index(piece)])
            asked.append(piece)
        given.append(total)
        short.append(less)
    return given, short


def test_scores_equal_one_pass_per_piece(scorer):
    [scores] = scorer.score([(SOURCE, TARGET)])
    given, short = plain(scorer, SOURCE, TARGET)
    assert scores.given == pytest.approx(given, abs=2e-3)
    assert scores.short == pytest.approx(short, abs=2e-3)
    assert scores.alone == pytest.approx(plain(scorer, (), TARGET)[0], abs=2e-3)
    assert scores.given != pytest.approx(scores.alone, abs=0.01)
    assert not torch.isin(torch.tensor(scorer.writer.tokens.word("big")), scorer.writer.pieces).any()  # not candidates


def test_word_scores_do_not_depend_on_the_batch(scorer):
    pairs = [(SOURCE, TARGET), ((), TARGET[:1]), (SOURCE, ()), (SOURCE[:1], TARGET[:2])]
    together = scorer.score(pairs)
    assert together == [scorer.score([pair])[0] for pair in pairs]
    assert [len(scores.given) for scores in together] == [4, 1, 0, 2]


def test_pair_without_an_adapter_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(word_scores, "DATA", tmp_path)
    refused(ConfigError, "no language model translates de-en", word_scores.build, "de-en")
