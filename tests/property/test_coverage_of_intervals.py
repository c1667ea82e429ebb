"""Coverage of 95% intervals when few questions win, and when two systems differ on few questions.

The values of questions are drawn from distributions with known means, and each interval is computed as for runs (1,000
resamples). `pytest -rP` prints the coverage of percentile and BCa intervals.
"""

from collections.abc import Callable

import numpy as np
import pytest

from sqa.core.differences import compare
from sqa.core.significance import LEVEL, bca, bootstrap, bootstrap_weights, means
from sqa.core.types import Floats
from sqa.metrics import build
from sqa.pipeline.saving import RESAMPLES

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


@pytest.mark.parametrize(
    ("what", "truth", "draw", "used"),  # truth: the mean; used: the kind of interval that the program computes
    [
        ("EW, 5% of the questions win", 0.05 * 0.35, wins(0.05), "bca"),
        ("EW, 60% of the questions win", 0.6 * 0.35, wins(0.6), "bca"),
        ("EW minus EW, 8% of the questions differ, equal systems", 0.0, gap(0.08, 0.5), "percentile"),
        ("EW minus EW, 10% of the questions differ", 0.1 * 0.35 * 0.2, gap(0.1, 0.6), "percentile"),
    ],
)
def test_used_interval_has_the_best_coverage(what, truth, draw, used):
    values = draw(np.random.default_rng([0, QUESTIONS]), (TRIALS, QUESTIONS))
    weights = np.concatenate(list(bootstrap_weights(QUESTIONS, RESAMPLES, 0))) / QUESTIONS  # (B, n)
    shares = {"percentile": 0.0, "bca": 0.0}
    for row, samples in zip(values, (weights @ values.T).T, strict=True):  # (n,), (B,)
        without = (row.sum() - row) / (QUESTIONS - 1)
        ends = {"percentile": np.percentile(samples, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])}
        ends["bca"] = bca(float(row.mean()), samples, without)
        for kind, (low, high) in ends.items():
            shares[kind] += (low <= truth <= high) / TRIALS
    print(f"{what}: percentile {shares['percentile']:.3f}, BCa {shares['bca']:.3f}")
    assert abs(shares[used] - LEVEL) < 0.025 and shares[used] >= max(shares.values()) - 0.005
    if what.startswith("EW, 5%"):  # many zeros
        assert abs(shares["bca"] - LEVEL) < BAND < LEVEL - shares["percentile"]


def test_runs_use_bca_and_comparisons_percentiles():
    [ew] = build(["ew"])
    values = wins(0.05)(np.random.default_rng(2), (1, QUESTIONS))[0]
    alone, against_nothing = bootstrap(means(values), ew), compare(means(values), means(0 * values), ew)
    assert alone.value == against_nothing.diff
    assert alone.low > against_nothing.low and alone.high > against_nothing.high  # shifted towards the tail
