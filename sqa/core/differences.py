"""Paired differences of two systems, and bands of curves, by resampling questions (sqa/core/significance.py).

    interval of a difference  plain percentiles, which hold there and BCa does not (Efron 1979; Koehn 2004); so a band's
                              (what each covers: tests/property/test_coverage_of_intervals.py)
    paired bootstrap          p = (1 + #{|d*_b - d| >= |d|}) / (B + 1), d the observed difference; two-sided
    approximate randomisation p = (1 + #{|d*_b| >= |d|}) / (B + 1), where resample b exchanges the two systems'
                              statistics on a random half of the questions; two-sided
                              (Noreen 1989; Riezler and Maxwell 2005)

Ties count against a difference: a system compared with itself has p = 1.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sqa.core.errors import DataError
from sqa.core.permutation import p_value
from sqa.core.significance import LEVEL, Resampled, block_sizes, bootstrap_weights, common_size, score_sums
from sqa.core.types import Floats

_SWAP = 2  # stream of random numbers that shares a seed with those of sqa/core/significance.py


class Curve(Protocol):
    """What a band needs."""

    def score_many(self, stats: Floats) -> Floats:
        """Sums of statistics (B, d) -> values (B, k); nan where undefined."""


@dataclass(frozen=True, slots=True)
class Band:
    """A curve on all questions and its pointwise percentile band, each (k,); nan where undefined."""

    value: Floats
    low: Floats
    high: Floats
    n: int  # questions


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same questions: a minus b, its percentile interval, and both two-sided p-values."""

    a: float
    b: float
    diff: float  # a - b
    low: float
    high: float
    p_bootstrap: float  # in 1/(resamples+1) .. 1
    p_randomization: float
    n: int  # questions

    @property
    def value(self) -> float:
        """The difference, as the value of a row of results."""
        return self.diff


def bootstrap_band(stats: Floats, curve: Curve, n_resamples: int = 1000, seed: int = 0) -> Band:
    """A curve's values on all questions with a pointwise percentile band; stats (n, d), `score_many` gives (B, k)."""
    n = common_size([stats], [curve], n_resamples)
    [samples] = score_sums([stats], [curve.score_many], bootstrap_weights(n, n_resamples, seed))  # (B, k)
    low, high = _percentiles(samples)
    return Band(curve.score_many(stats.sum(axis=0, keepdims=True))[0], low, high, n)


def compare_many(
    pairs: Sequence[tuple[Floats, Floats]], metrics: Sequence[Resampled], n_resamples: int = 1000, seed: int = 0
) -> list[Comparison]:
    """One comparison per (a (n, d_i), b (n, d_i)) and metric; row i of a and b is the same question."""
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    n = common_size([*a, *b], [*metrics, *metrics], n_resamples)
    for left, right, metric in zip(a, b, metrics, strict=True):
        if left.shape != right.shape:
            raise DataError(f"{metric.name}: statistics of {left.shape} and {right.shape} cannot be compared")
    points = [(m.score(x.sum(axis=0)), m.score(y.sum(axis=0))) for x, y, m in zip(a, b, metrics, strict=True)]
    scorers = [metric.score_many for metric in (*metrics, *metrics)]
    resampled = score_sums([*a, *b], scorers, bootstrap_weights(n, n_resamples, seed))
    gaps = [_gap(m, x.sum(axis=0), y.sum(axis=0)) for x, y, m in zip(a, b, metrics, strict=True)]
    changes = [y - x for x, y in zip(a, b, strict=True)]
    swapped = score_sums(changes, gaps, _swap_weights(n, n_resamples, seed))
    comparisons, m = [], len(metrics)
    for i, (value_a, value_b) in enumerate(points):
        diff = value_a - value_b
        boot = resampled[i] - resampled[m + i]  # (B,)
        [low], [high] = _percentiles(boot[:, None])
        p_bootstrap, p_swap = (float(p_value(np.abs(diff), np.abs(null))) for null in (boot - diff, swapped[i]))
        comparisons.append(Comparison(value_a, value_b, diff, float(low), float(high), p_bootstrap, p_swap, n))
    return comparisons


def compare(a: Floats, b: Floats, metric: Resampled, n_resamples: int = 1000, seed: int = 0) -> Comparison:
    """Paired comparison of two systems' statistics (n, d) on the same questions in the same order."""
    return compare_many([(a, b)], [metric], n_resamples, seed)[0]


def _swap_weights(n: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Blocks (b, n) of 0/1 weights: on which questions the two systems change places."""
    rng = np.random.default_rng([seed, _SWAP])
    for rows in block_sizes(n, n_resamples):
        yield rng.integers(0, 2, size=(rows, n)).astype(np.float64)


def _gap(metric: Resampled, a: Floats, b: Floats) -> Callable[[Floats], Floats]:
    """The differences of two systems with sums a and b (d,), some questions' statistics exchanged, by w @ (b - a)."""
    return lambda change: metric.score_many(a + change) - metric.score_many(b - change)


def _percentiles(samples: Floats) -> tuple[Floats, Floats]:
    """Lower and upper percentile of each column of (B, k), nan values left out; nan where all are."""
    tails = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
    defined = [column[~np.isnan(column)] for column in samples.T]
    ends = [np.percentile(column, tails) if len(column) else np.array([np.nan, np.nan]) for column in defined]
    return np.array([end[0] for end in ends]), np.array([end[1] for end in ends])


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """Means over questions of several values, for `bootstrap_band`; stats (d + 1,) = the values, then 1."""

    name: str

    def score_many(self, stats: Floats) -> Floats:
        """(B, d + 1) -> (B, d)."""
        return stats[:, :-1] / stats[:, -1:]


def curve_stats(values: Floats) -> Floats:
    """(n, d) values -> (n, d + 1) statistics of `MeanCurve`."""
    return np.hstack([values, np.ones((len(values), 1))])
