"""Properties of metrics on generated traces: additivity, independence of the order of questions, and bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqa.core import Buzz, Emission, Guess, NotComputable, Question, QuestionTrace
from sqa.metrics import all_names, build, collect
from sqa.metrics.qa import CURVES

WORDS = ["el", "río", "nace", "lejos,", "dicen.", "una"]


@st.composite
def traces(draw):
    """Draw a valid append-only trace with guesses and buzzes; any sentence may have no target words."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    sentences = tuple(tuple(draw(st.sampled_from(WORDS)) for _ in range(size)) for size in sizes)
    question = Question("q", "made", "es", sentences, ("the river rises far away, they say.",), "Right")
    emissions = []
    for s, size in enumerate(sizes):
        for g in sorted(draw(st.lists(st.integers(0, size), max_size=8))):
            emissions.append(Emission(s, draw(st.sampled_from(["the", "river", "rises", "away,"])), g, False))
    steps = len(emissions)
    ranks = draw(st.lists(st.integers(0, 12), min_size=steps, max_size=steps))
    buzzes = draw(st.lists(st.booleans(), min_size=steps, max_size=steps))
    guesses = tuple(tuple(Guess("Right" if i == r else f"W{i}", -float(i)) for i in range(1, 13)) for r in ranks)
    return QuestionTrace(question, tuple(emissions), guesses, tuple(Buzz(float(b), b) for b in buzzes))


# answer-lag cannot be computed for these questions; tests/unit/guessers/test_listener.py tests it
BUILT = build([name for name in all_names() if name != "answer-lag"])


@settings(max_examples=30, deadline=None)
@given(st.lists(traces(), min_size=1, max_size=4))
def test_statistics_are_finite_additive_and_order_free(sample):
    for metric in BUILT:
        stats = collect(sample, metric)
        assert stats.ndim == 2 and stats.dtype == np.float64 and np.isfinite(stats).all(), metric.name
        forward, backward = stats.sum(axis=0), stats[::-1].sum(axis=0)
        try:
            score = metric.score(forward)
        except NotComputable:
            assert np.isnan(metric.score_many(forward[None])[0])
            continue
        assert metric.score(backward) == pytest.approx(score, rel=1e-12)
        assert metric.score_many(np.stack([forward, forward])) == pytest.approx([score, score], rel=1e-9, abs=1e-9)
        if metric.name != "bleu":  # BLEU's smoothing of unmatched orders depends on the corpus size
            assert metric.score(2 * forward) == pytest.approx(score, rel=1e-9)  # every question twice


@settings(max_examples=30, deadline=None)
@given(st.lists(traces(), min_size=1, max_size=4))
def test_scores_keep_their_bounds_and_orderings(sample):
    metrics = {metric.name: metric for metric in BUILT}

    def score(name):
        return metrics[name].score(collect(sample, metrics[name]).sum(axis=0))

    for name in ("accuracy", "accuracy@10", "mrr"):
        assert 0 <= score(name) <= 1
    for name in ("bleu", "chrf"):
        assert 0 <= score(name) <= 100.000001
    assert score("accuracy") <= score("mrr") + 1e-12 and score("accuracy") <= score("accuracy@10")
    assert score("oracle-ew") <= score("oracle-ew@curve-end") + 1e-12
    top = float(max(CURVES["qanta2018"](np.linspace(0, 1, 1001)))) + 1e-9
    for name in ("ew", "oracle-ew", "stable-ew"):
        assert 0 <= score(name) <= top
    tail = np.linspace(0.04, 1, 200)  # the curve only falls from its maximum near t = .031
    assert (np.diff(CURVES["qanta2018"](tail)) < 0).all()
    assert score("stable-ew") <= score("oracle-ew") + 0.0013  # .0013: the curve's rise before t = .031
