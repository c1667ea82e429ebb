"""Calibration of a buzzer: its probability of being right should equal the share of right steps.

The fit is isotonic.  Steps are sorted by logit and cut into bins of equal size.  Neighbouring bins whose shares of
right steps decrease are merged (pool adjacent violators), and the logits of the shares are joined by straight
lines.  A slope of 0.01 is added to keep different logits apart, so a threshold selects the same steps before and
after calibration.  `calibrated` in buzzers/learnt.py applies the fit.

ECE            sum over ten bins of equal width of (steps in the bin / steps) * |mean probability - share right|, 0..1
Brier score    mean of (probability - right)^2, 0..1
"""

import numpy as np

from buzzers.learnt import SLOPE

BINS = 10
KNOTS = 20  # maximum number of bins of the fit


def fit(logits: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the knots of the calibration, an array of shape (2, k) with 1 <= k <= 20.

    The first row has increasing logits, the second their calibrated logits, which never decrease, minus .01 times the
    logit.  `logits` are finite, `right` is boolean; both have shape (n,), n >= 1.
    """
    order = np.argsort(logits, kind="stable")
    pools: list[list[float]] = []  # [steps, sum of logits, right steps]
    for part in np.array_split(order, min(KNOTS, len(order))):
        pools.append([len(part), float(logits[part].sum(dtype=np.float64)), float(right[part].sum())])
        while len(pools) > 1 and (_chance(pools[-1]) <= _chance(pools[-2]) or _mean(pools[-1]) <= _mean(pools[-2])):
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    at = np.array([_mean(pool) for pool in pools])
    chance = np.array([_chance(pool) for pool in pools])
    return np.stack([at, np.log(chance / (1 - chance)) - SLOPE * at]).astype(np.float32)


def _chance(pool: list[float]) -> float:
    """Return the share of right steps, with half a right and half a wrong step added so that it is never 0 or 1."""
    return (pool[2] + 0.5) / (pool[0] + 1)


def _mean(pool: list[float]) -> float:
    return pool[1] / pool[0]


def expected_calibration_error(chances: np.ndarray, right: np.ndarray) -> float:
    """Return the ECE of n >= 1 probabilities, given their labels `right`."""
    bins = np.minimum((chances * BINS).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(bins, chances - right)).sum() / len(chances))


def brier(chances: np.ndarray, right: np.ndarray) -> float:
    """Return the Brier score of n >= 1 probabilities, given their labels `right`."""
    return float(np.mean((chances - right) ** 2))
