"""What a language model says of words that it did not write: against plain forward passes, one word after the other."""

from __future__ import annotations

import pytest
import torch
from refusals import refused
from stand_ins.lm_models import make

from smt.lm import word_scores
from smt.lm.base import load_base
from smt.lm.layout import OFFSET, Layout
from smt.lm.network import mask_of
from smt.lm.stepper import LmWriter
from smt.lm.word_scores import LmScorer
from sqa.core.errors import ConfigError

SOURCE = tuple("el perro grande".split())
TARGET = tuple("the big dog Łódź".split())


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    base = load_base(make(tmp_path_factory.mktemp("base"), "gemma3_text", seed=3), torch.float32)
    layout = Layout.of(base.tokens, "es", "en")
    pieces = torch.tensor([i for i in range(4, base.tokens.size) if i not in base.tokens.text(" big")])
    writer = LmWriter.of(base.network, base.tokens, layout, pieces, OFFSET)
    return LmScorer(lambda: writer, "f")


def plain(scorer, source, target):
    """ln p of every word, and how much it falls short of the likeliest pieces, from the definition: one forward pass
    for each piece, softmax over the choice and the piece itself.
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
            states, _ = w.model(torch.tensor([[*before, *asked]]), torch.tensor([positions]), own)
            choice = sorted({*w.pieces.tolist(), piece})
            scores = (w.model.output_rows(torch.tensor(choice)) @ states[0, -1]).log_softmax(0)
            total += float(scores[choice.index(piece)])
            less += float(scores.max() - scores[choice.index(piece)])
            asked.append(piece)
        given.append(total)
        short.append(less)
    return given, short


def test_scores_are_those_of_one_pass_for_each_piece(scorer):
    [scores] = scorer.score([(SOURCE, TARGET)])
    given, short = plain(scorer, SOURCE, TARGET)
    assert scores.given == pytest.approx(given, abs=2e-3)
    assert scores.short == pytest.approx(short, abs=2e-3)
    assert scores.alone == pytest.approx(plain(scorer, (), TARGET)[0], abs=2e-3)
    assert scores.given != pytest.approx(scores.alone, abs=0.01)
    assert not torch.isin(
        torch.tensor(scorer.writer.tokens.word("big")), scorer.writer.pieces
    ).any()  # not of the choice


def test_one_number_per_word_whatever_is_scored_along(scorer):
    pairs = [(SOURCE, TARGET), ((), TARGET[:1]), (SOURCE, ()), (SOURCE[:1], TARGET[:2])]
    together = scorer.score(pairs)
    assert together == [scorer.score([pair])[0] for pair in pairs]
    assert [len(scores.given) for scores in together] == [4, 1, 0, 2]


def test_a_pair_without_an_adapter_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(word_scores, "DATA", tmp_path)
    refused(ConfigError, "no language model was trained to translate de-en", word_scores.build, "de-en")
