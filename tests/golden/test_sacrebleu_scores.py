"""BLEU and chrF of a corpus equal sacrebleu on the same lines, to the last bit; resampled ones to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu

from sqa.metrics import build, collect
from sqa.metrics.quality import lines
from sqa.trace import QuestionTrace
from sqa.types import Emission, Question

PAIRS = [  # (translation by sentence, human translation by sentence)
    (
        ['This author\'s novel, "The Plain", ends badly.', "Name her."],
        ["The Plain ends badly for its author.", "Name her."],
    ),
    (["It won't rain, they say; it never does!", ""], ["They say it will not rain; it never does!"]),
    (["", ""], ["A question that got no translation at all."]),
    (["The river flows at 3,000 m and 1.5 km from Lodz."], ["The river rises at 3,000 m, 1.5 km from Łódź."]),
    (["one"], ["One word against several of them"]),
    (
        ["For ten points give this city on the river with seven bridges."],
        ["For ten points, name this city of seven bridges."],
    ),
]


def trace_of(i, hypothesis, reference):
    sentences = tuple(("uno", "dos", "tres") for _ in hypothesis)
    question = Question(f"q{i}", "made", "es", sentences, tuple(reference), "P")
    emissions = tuple(Emission(s, w, 3, True) for s, line in enumerate(hypothesis) for w in line.split())
    return QuestionTrace(question, emissions)


TRACES = [trace_of(i, *pair) for i, pair in enumerate(PAIRS)]


@pytest.mark.parametrize("name,reference_scorer", [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf)])
@pytest.mark.parametrize("chosen", [range(6), [0], [2], [1, 2], [4], [0, 0, 5], [2, 4]], ids=str)
def test_equal(name, reference_scorer, chosen):
    [metric] = build([name])
    traces = [TRACES[i] for i in chosen]
    hypotheses, references = zip(*map(lines, traces), strict=True)
    expected = reference_scorer(list(hypotheses), [list(references)]).score
    stats = collect(traces, metric)
    assert metric.score(stats.sum(axis=0)) == expected
    assert metric.score_many(stats.sum(axis=0, keepdims=True))[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_resampled_scores_equal_sacrebleu(name):
    [metric] = build([name])
    weights = np.random.default_rng(0).multinomial(6, [1 / 6] * 6, size=300)
    sums = weights @ collect(TRACES, metric)
    assert metric.score_many(sums) == pytest.approx([metric.score(row) for row in sums], abs=1e-9)


def test_signatures_are_sacrebleus():
    bleu, chrf = build(["bleu", "chrf"])
    version = sacrebleu.__version__
    assert bleu.signature() == f"bleu|segment:question|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert chrf.signature() == f"chrf|segment:question|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
