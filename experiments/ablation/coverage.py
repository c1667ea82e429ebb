"""How often 95% intervals hold the true value: python -m experiments.ablation.coverage

Questions are drawn from made-up distributions whose mean is known: expected wins where hardly any question wins, where
many do, and the difference of two systems; each time the interval is computed as the runs' are (1,000 resamples).
Printed (TSV): the share of intervals that hold the truth, percentile and BCa, and the one that is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sqa.core.arrays import Floats
from sqa.core.significance import bca, bootstrap_weights
from sqa.run.folder import RESAMPLES, tsv

TRIALS, LEVEL = 2000, 0.95
HEADER = ("what", "questions", "truth", "percentile", "bca", "used")

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


def main(trials: int = TRIALS) -> None:
    """Print the table, each population with so many samples of questions."""
    lines = []
    for one in POPULATIONS:
        shares = (f"{share:.3f}" for share in covered(one, trials))
        lines.append((one.what, str(one.questions), f"{one.truth:.4f}", *shares, one.used))
    print(tsv(HEADER, lines), end="")


if __name__ == "__main__":
    main()
