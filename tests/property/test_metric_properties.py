"""What holds for every metric on any trace: additivity, order, bounds, intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqa.core.errors import NotComputable
from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Emission, Guess, Question
from sqa.metrics import ALL, build, collect
from sqa.metrics.delays import pack
from sqa.metrics.latency import CONVENTIONS, FORMULAS
from sqa.metrics.qa import CURVES

WORDS = ["el", "río", "nace", "lejos,", "dicen.", "una"]


@st.composite
def traces(draw):
    """A valid append-only trace with guesses and buzzes; any sentence, or all, may stay without target words."""
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


@st.composite
def sentences_of_delays(draw):
    """(delays, |x|, |y*|) of a few sentences; delays never decrease and stay within the source."""
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.integers(1, 12))
        rows.append((sorted(draw(st.lists(st.integers(1, size), max_size=10))), size, draw(st.integers(1, 15))))
    return tuple(zip(*rows, strict=True))


BUILT = build(
    [name for name in ALL if name != "answer-lag"]
)  # which refuses these questions: unit/guessers/test_listener


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
        if metric.name != "bleu":  # whose smoothing of unmatched orders depends on the corpus's size
            assert metric.score(2 * forward) == pytest.approx(score, rel=1e-9)  # every question twice: the same score


@settings(max_examples=30, deadline=None)
@given(st.lists(traces(), min_size=1, max_size=4))
def test_bounds_and_orderings(sample):
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
    tail = np.linspace(0.04, 1, 200)  # from its top near t = .031 the curve only falls
    assert (np.diff(CURVES["qanta2018"](tail)) < 0).all()
    assert score("stable-ew") <= score("oracle-ew") + 0.0013  # .0013: the curve's rise before t = .031


@settings(max_examples=100, deadline=None)
@given(sentences_of_delays())
def test_latency_bounds(rows):
    delays = pack(*rows)
    modern = CONVENTIONS["simuleval-1.1"]
    values = {name: FORMULAS[name](pack(rows[0], rows[1]), modern) for name in modern.formulas}
    wordless = np.array([not row for row in rows[0]])
    sizes = np.array(rows[1], dtype=float)
    for name, value in values.items():
        assert (np.isnan(value) == wordless).all(), name
    spoken = ~wordless
    assert (values["ap"][spoken] > 0).all() and (values["ap"][spoken] <= 1 + 1e-12).all()
    assert (values["dal"][spoken] >= np.array([row[0] for row in rows[0] if row]) - 1e-9).all()
    assert (values["dal"][spoken] <= sizes[spoken] + 1e-9).all()
    assert (values["al"][spoken] <= values["dal"][spoken] + 1e-9).all()
    # with a reference: LAAL uses the longer |y|, hence the flatter diagonal, hence the larger lag
    al, laal = FORMULAS["al"](delays, modern), FORMULAS["laal"](delays, modern)
    assert (laal[spoken] >= al[spoken] - 1e-9).all()


@settings(max_examples=100, deadline=None)
@given(sentences_of_delays(), st.sampled_from(sorted(CONVENTIONS)))
def test_vectorised_equals_the_definition(rows, name):
    """A slow transcription of the formulas in the module's docstring, sentence by sentence."""
    convention = CONVENTIONS[name]
    for use_reference in (False, True):
        delays = pack(rows[0], rows[1], rows[2] if use_reference else None)
        al, dal = FORMULAS["al"](delays, convention), FORMULAS["dal"](delays, convention)
        for i, (row, size, reference) in enumerate(zip(*rows, strict=True)):
            if not row:
                continue
            read = [d + convention.late if d < size else d for d in row]
            target = reference if use_reference and convention.al_reference != "ignored" else len(row)
            tau = next((j + 1 for j, d in enumerate(read) if d >= size), len(read))
            ideal = [j * size / target for j in range(len(read))]
            if convention.al_reference == "capped":
                ideal = [min(j, target - 1) * size / target for j in range(len(read))]
            assert al[i] == pytest.approx(sum(d - x for d, x in zip(read[:tau], ideal[:tau], strict=True)) / tau)
            late, total = None, 0.0
            for j, d in enumerate(read):
                late = d if late is None else max(d, late + size / len(row))
                total += late - j * size / len(row)
            assert dal[i] == pytest.approx(total / len(row))
