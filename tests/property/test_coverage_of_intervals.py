"""How often 95% intervals hold the true value, where hardly any question wins, and where two systems differ on few.

Questions are drawn from made-up distributions whose mean is known; each time the interval is computed as the runs' are
(1,000 resamples).  `pytest -rP` prints the shares of intervals that hold the truth, percentile and BCa.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from sqa.core.differences import compare
from sqa.core.significance import bca, bootstrap, bootstrap_weights
from sqa.core.types import Floats
from sqa.metrics import build
from sqa.run.saving import RESAMPLES

TRIALS, LEVEL = 2000, 0.95
BAND = 3 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)  # three deviations of a share of trials
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]  # values of (trials, questions)


class Population(NamedTuple):
    """Where questions come from."""

    what: str
    questions: int
    truth: float  # the mean
    draw: Draw
    used: str  # the kind of interval that such a number has


def wins(share: float) -> Draw:
    """A share of the questions wins .1 to .6, the others nothing."""
    return lambda rng, size: (rng.random(size) < share) * rng.uniform(0.1, 0.6, size)


def gap(either: float, share: float) -> Draw:
    """Of the questions that either of two systems wins, the first has a share; on the others both are alike."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
        sign = np.where(rng.random(size) < share, 1.0, -1.0)
        return (rng.random(size) < either) * sign * rng.uniform(0.1, 0.6, size)

    return draw


POPULATIONS = (
    Population("EW, 5% of the questions win", 147, 0.05 * 0.35, wins(0.05), "bca"),
    Population("EW, 5% of the questions win", 511, 0.05 * 0.35, wins(0.05), "bca"),
    Population("EW, 60% of the questions win", 147, 0.6 * 0.35, wins(0.6), "bca"),
    Population("EW minus EW, 8% of the questions differ, equal systems", 147, 0.0, gap(0.08, 0.5), "percentile"),
    Population("EW minus EW, 10% of the questions differ", 147, 0.1 * 0.35 * 0.2, gap(0.1, 0.6), "percentile"),
    Population("EW minus EW, 30% of the questions differ", 147, 0.3 * 0.35 * 0.1, gap(0.3, 0.55), "percentile"),
)


def covered(population: Population, trials: int = TRIALS, seed: int = 0) -> tuple[float, float]:
    """Shares of `trials` whose percentile and whose BCa interval hold the truth."""
    n, truth = population.questions, population.truth
    values = population.draw(np.random.default_rng([seed, n]), (trials, n))
    weights = np.concatenate(list(bootstrap_weights(n, RESAMPLES, seed))) / n  # (B, n)
    tails = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
    hits = np.zeros(2)
    for row, samples in zip(values, (weights @ values.T).T, strict=True):  # (n,), (B,)
        without = (row.sum() - row) / (n - 1)
        ends = np.percentile(samples, tails), bca(float(row.mean()), samples, without, LEVEL)
        hits += [low <= truth <= high for low, high in ends]
    percentile, corrected = hits / trials
    return float(percentile), float(corrected)


@pytest.mark.parametrize("population", POPULATIONS, ids=lambda population: f"{population.what}, {population.questions}")
def test_the_kind_of_interval_that_is_used_covers_more_or_as_much(population):
    percentile, bca = covered(population, TRIALS)
    used, other = (bca, percentile) if population.used == "bca" else (percentile, bca)
    print(f"{population.what}, {population.questions}: percentile {percentile:.3f}, BCa {bca:.3f}")
    assert abs(used - LEVEL) < 0.025
    assert used >= other - 0.005
    if population is POPULATIONS[0]:  # many zeros
        assert abs(bca - LEVEL) < BAND < LEVEL - percentile and bca > percentile + 0.01


def test_a_run_has_bca_and_a_comparison_percentiles():
    [ew] = build(["ew"])
    values = wins(0.05)(np.random.default_rng(2), (1, 147))[0]
    stats, nothing = np.column_stack([values, np.ones(147)]), np.column_stack([np.zeros(147), np.ones(147)])
    alone, against_nothing = bootstrap(stats, ew), compare(stats, nothing, ew)
    assert alone.value == against_nothing.diff
    assert alone.low > against_nothing.low and alone.high > against_nothing.high  # moved to where the tail is
