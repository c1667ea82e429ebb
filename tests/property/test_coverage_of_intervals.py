"""Coverage of 95% intervals when few questions win, and when two systems differ on few questions.

The values of questions are drawn from distributions with known means, and each interval is computed as for runs (1,000
resamples). `pytest -rP` prints every coverage.
"""

from collections.abc import Callable

import numpy as np
import pytest

from sqa.core import Floats, bca, bootstrap, bootstrap_weights, compare, compare_levels, means
from sqa.core.significance import LEVEL
from sqa.metrics import build
from sqa.pipeline import RESAMPLES

TRIALS, QUESTIONS = 2000, 147
BAND = 3 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)  # three standard deviations of the observed coverage
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]  # values (trials, questions)


def wins(share: float) -> Draw:
    """Return a function that draws values: .1 to .6 for a share of the questions, and 0 for the others."""
    return lambda rng, size: (rng.random(size) < share) * rng.uniform(0.1, 0.6, size)


def gap(either: float, share: float) -> Draw:
    """Return a function that draws differences between two systems.

    `either` is the share of questions that exactly one system wins; the first system wins a share `share` of these.
    """
    return lambda rng, size: np.where(rng.random(size) < share, 1.0, -1.0) * wins(either)(rng, size)


def cover(hits: list[bool]) -> float:
    """Return a share, and print it."""
    share = float(np.mean(hits))
    print(f"{share:.3f} of {len(hits)}")
    return share


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_values_have_bca_intervals(share):
    values = wins(share)(np.random.default_rng([0, QUESTIONS]), (TRIALS, QUESTIONS))
    weights = np.concatenate(list(bootstrap_weights(QUESTIONS, RESAMPLES, 0))) / QUESTIONS  # (B, n)
    covered = {"percentile": 0.0, "bca": 0.0}
    for row, samples in zip(values, (weights @ values.T).T, strict=True):  # (n,), (B,)
        without = (row.sum() - row) / (QUESTIONS - 1)
        ends = {"percentile": np.percentile(samples, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])}
        ends["bca"] = bca(float(row.mean()), samples, without)
        for kind, (low, high) in ends.items():
            covered[kind] += (low <= share * 0.35 <= high) / TRIALS
    print(f"EW, {share:.0%} of the questions win: percentile {covered['percentile']:.3f}, BCa {covered['bca']:.3f}")
    assert abs(covered["bca"] - LEVEL) < 0.025 and covered["bca"] >= covered["percentile"] - 0.005
    if share == 0.05:  # many zeros
        assert abs(covered["bca"] - LEVEL) < BAND < LEVEL - covered["percentile"]


@pytest.mark.parametrize(("n", "least"), [(3, 0.70), (5, 0.88), (8, 0.93), (15, 0.93), (60, 0.93)])
def test_few_questions_have_wider_intervals(n, least):
    """Three questions cannot do better: in a quarter of all draws, every value is on the same side of the mean."""
    [ew] = build(["ew"])
    values = wins(0.6)(np.random.default_rng([1, n]), (500, n))
    ends = [bootstrap(means(row), ew) for row in values]
    assert cover([end.low <= 0.6 * 0.35 <= end.high for end in ends]) >= least


@pytest.mark.parametrize("n", [5, 8, 15, 60, 147, 511])
@pytest.mark.parametrize(
    ("draw", "truth"), [(gap(0.08, 0.5), 0.0), (gap(0.1, 0.75), 0.1 * 0.35 * 0.5), (gap(0.6, 0.6), 0.6 * 0.35 * 0.2)]
)
def test_differences_have_their_level(n, draw, truth):
    """The interval covers, agrees with the p-value, and equal systems differ in at most 5% of the cases."""
    [ew] = build(["ew"])
    values = draw(np.random.default_rng([2, n]), (300, n))
    compared = [compare(means(row), means(0 * row), ew, RESAMPLES, seed) for seed, row in enumerate(values)]
    band = 3 * np.sqrt(LEVEL * (1 - LEVEL) / len(compared))
    assert all((c.p <= 1 - LEVEL) == (not c.low <= 0 <= c.high) for c in compared)
    assert cover([c.low <= truth <= c.high for c in compared]) >= LEVEL - band
    if not truth:
        assert np.mean([c.p <= 1 - LEVEL for c in compared]) <= 1 - LEVEL + band


@pytest.mark.parametrize("members", [2, 10])
@pytest.mark.parametrize("deviation", [0.02, 0.1])  # between training runs
def test_few_training_runs_have_their_level(members, deviation):
    [ew] = build(["ew"])
    rng, hits = np.random.default_rng([3, members]), []

    def system(questions: Floats) -> Floats:
        runs = [questions + deviation * rng.normal() + 0.15 * rng.normal(size=len(questions)) for _ in range(members)]
        return np.stack([means(run) for run in runs])

    for _ in range(300):
        questions = wins(0.5)(rng, (1, QUESTIONS))[0]
        of = compare_levels(system(questions), system(questions), ew, 200, (False,))
        assert (of.p <= 1 - LEVEL) == (not of.low <= 0 <= of.high)
        hits.append(of.low <= 0 <= of.high)
    assert cover(hits) >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / len(hits))
