"""Intervals and paired tests by resampling QUESTIONS, for any metric that is a score of summed statistics.

Sentences of one question are not independent, so the question is the unit.  A resample is a vector of weights w (n,)
and its statistics are w @ stats: one matrix product scores thousands of resamples.  The same seed and number of
questions give the same resamples for every metric and system; the result is a function of its arguments.

    interval of a value       95%: BCa, bias-corrected and accelerated percentiles of the score over B resamples with
                              replacement (Efron 1987).  Plain percentiles are too low where most questions win nothing
    interval of a difference  plain percentiles, which hold there and BCa does not (Efron 1979; Koehn 2004); so a band's
                              (what each covers: tests/property/test_coverage_of_intervals.py)
    paired bootstrap          p = (1 + #{|d*_b - d| >= |d|}) / (B + 1), d the observed difference; two-sided
    approximate randomisation p = (1 + #{|d*_b| >= |d|}) / (B + 1), where resample b exchanges the two systems'
                              statistics on a random half of the questions; two-sided
                              (Noreen 1989; Riezler and Maxwell 2005)

Ties count against a difference: a system compared with itself has p = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.types import Floats

LEVEL = 0.95  # of intervals and bands
_CELLS = 4_000_000  # weights held at a time: 32 MB
_BOOTSTRAP, _SWAP = 1, 2  # streams of random numbers that share a seed
_TIE = 1e-9  # differences closer than this, relative to the observed one, are equal
_NORMAL = NormalDist()


class Curve(Protocol):
    """What a band needs."""

    @property
    def name(self) -> str: ...

    def score_many(self, stats: Floats) -> Floats:
        """Sums of statistics (B, d) -> values (B, k); nan where undefined."""
        ...


class Resampled(Protocol):
    """What intervals and tests need of a metric."""

    @property
    def name(self) -> str: ...

    def score(self, stats: Floats) -> float:
        """A sum of statistics (d,) -> its score; NotComputable where undefined."""
        ...

    def score_many(self, stats: Floats) -> Floats:
        """Sums of statistics (B, d) -> scores (B,), equal to `score` on each; nan where undefined."""
        ...


@dataclass(frozen=True, slots=True)
class Interval:
    """A score on all questions and its BCa interval."""

    value: float
    low: float
    high: float
    n: int  # questions
    resamples: int = 1000
    undefined: int = 0  # resamples on which the metric has no value; the interval is over the others


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


def bootstrap_many(
    stats: Sequence[Floats], metrics: Sequence[Resampled], n_resamples: int = 1000, seed: int = 0
) -> list[Interval]:
    """One interval per (stats (n, d_i), metric), all from the same resamples; n is common to all.

    A metric without a value on all questions: NotComputable.
    """
    n = _check(stats, metrics, n_resamples)
    values = [metric.score(s.sum(axis=0)) for s, metric in zip(stats, metrics, strict=True)]
    samples = _resample(stats, metrics, bootstrap_weights(n, n_resamples, seed))
    intervals = []
    for value, scores, s, metric in zip(values, samples, stats, metrics, strict=True):
        without = metric.score_many(s.sum(axis=0) - s)  # (n,), each question left out once
        low, high = bca(value, scores, without)
        intervals.append(Interval(value, low, high, n, n_resamples, int(np.isnan(scores).sum())))
    return intervals


def bootstrap(stats: Floats, metric: Resampled, n_resamples: int = 1000, seed: int = 0) -> Interval:
    """The score of stats (n, d) summed over questions, with its BCa interval."""
    return bootstrap_many([stats], [metric], n_resamples, seed)[0]


def bootstrap_band(stats: Floats, curve: Curve, n_resamples: int = 1000, seed: int = 0) -> Band:
    """A curve's values on all questions with a pointwise percentile band; stats (n, d), `score_many` gives (B, k)."""
    n = _check([stats], [curve], n_resamples)
    [samples] = _resample([stats], [curve], bootstrap_weights(n, n_resamples, seed))  # (B, k)
    low, high = _percentiles(samples)
    return Band(curve.score_many(stats.sum(axis=0, keepdims=True))[0], low, high, n)


def compare_many(
    pairs: Sequence[tuple[Floats, Floats]],
    metrics: Sequence[Resampled],
    n_resamples: int = 1000,
    seed: int = 0,
) -> list[Comparison]:
    """One comparison per (a (n, d_i), b (n, d_i)) and metric; row i of a and b is the same question."""
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    n = _check([*a, *b], [*metrics, *metrics], n_resamples)
    for left, right, metric in zip(a, b, metrics, strict=True):
        if left.shape != right.shape:
            raise DataError(f"{metric.name}: statistics of {left.shape} and {right.shape} cannot be compared")
    points = [(m.score(x.sum(axis=0)), m.score(y.sum(axis=0))) for x, y, m in zip(a, b, metrics, strict=True)]
    resampled = _resample([*a, *b], [*metrics, *metrics], bootstrap_weights(n, n_resamples, seed))
    # swapping on the questions where w = 1 leaves a + w (b - a) and b - w (b - a)
    change = [y - x for x, y in zip(a, b, strict=True)]
    sums = [(x.sum(axis=0), y.sum(axis=0)) for x, y in zip(a, b, strict=True)]
    swapped_a = [_after(metric, base, +1) for metric, (base, _) in zip(metrics, sums, strict=True)]
    swapped_b = [_after(metric, base, -1) for metric, (_, base) in zip(metrics, sums, strict=True)]
    swapped = _score_sums([*change, *change], [*swapped_a, *swapped_b], _swap_weights(n, n_resamples, seed))
    comparisons, m = [], len(metrics)
    for i, (value_a, value_b) in enumerate(points):
        diff = value_a - value_b
        boot = resampled[i] - resampled[m + i]  # (B,)
        [low], [high] = _percentiles(boot[:, None])
        p_bootstrap = _p_value(boot - diff, diff)
        p_swap = _p_value(swapped[i] - swapped[m + i], diff)
        comparisons.append(Comparison(value_a, value_b, diff, float(low), float(high), p_bootstrap, p_swap, n))
    return comparisons


def compare(a: Floats, b: Floats, metric: Resampled, n_resamples: int = 1000, seed: int = 0) -> Comparison:
    """Paired comparison of two systems' statistics (n, d) on the same questions in the same order."""
    return compare_many([(a, b)], [metric], n_resamples, seed)[0]


# ------------------------------------------------------------------------------------------------ resampling


def bootstrap_weights(n: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Blocks (b, n) of multinomial weights: how often each question is drawn in n draws with replacement."""
    rng = np.random.default_rng([seed, _BOOTSTRAP])
    for rows in _blocks(n, n_resamples):
        drawn = rng.integers(0, n, size=(rows, n)) + np.arange(rows)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _swap_weights(n: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Blocks (b, n) of 0/1 weights: on which questions the two systems change places."""
    rng = np.random.default_rng([seed, _SWAP])
    for rows in _blocks(n, n_resamples):
        yield rng.integers(0, 2, size=(rows, n)).astype(np.float64)


def _blocks(n: int, n_resamples: int) -> Iterator[int]:
    size = max(1, _CELLS // n)
    for start in range(0, n_resamples, size):
        yield min(size, n_resamples - start)


def _resample(stats: Sequence[Floats], metrics: Sequence[Resampled | Curve], weights: Iterator[Floats]) -> list[Floats]:
    """Scores of every (stats, metric) on every resample: (B,) or (B, k) each."""
    return _score_sums(stats, [metric.score_many for metric in metrics], weights)


def _score_sums(
    stats: Sequence[Floats], scorers: Sequence[Callable[[Floats], Floats]], weights: Iterator[Floats]
) -> list[Floats]:
    columns = np.hstack([np.asarray(s, dtype=np.float64) for s in stats])  # (n, sum of d_i)
    cuts = np.cumsum([s.shape[1] for s in stats])[:-1]
    blocks: list[list[Floats]] = [[] for _ in scorers]
    for block in weights:
        sums = block @ columns  # (b, sum of d_i)
        for i, (scorer, part) in enumerate(zip(scorers, np.split(sums, cuts, axis=1), strict=True)):
            blocks[i].append(scorer(part))
    return [np.concatenate(parts) for parts in blocks]


def _after(metric: Resampled, base: Floats, sign: int) -> Callable[[Floats], Floats]:
    """Scores of base + sign * change, for changes (b, d)."""
    return lambda change: metric.score_many(base + sign * change)


def bca(value: float, samples: Floats, without: Floats, level: float = LEVEL) -> tuple[float, float]:
    """The BCa interval of a value from its resamples (B,) and the values with each question left out (n,).

    Each end is the percentile F(b + (b + z) / (1 - a (b + z))), F normal, z the normal quantile of the tail.  The bias
    b is the normal quantile of the share of resamples below the value, ties by half, itself among them (so b is
    finite); a is the sum of cubes of the influences (the mean of `without` minus each) over six times the 1.5th power
    of that of squares, 0 where all are equal.  What is undefined (nan) is left out; without a defined resample both
    ends are nan.
    """
    samples, without = samples[~np.isnan(samples)], without[~np.isnan(without)]
    if not len(samples):
        return np.nan, np.nan
    tie = _TIE * max(abs(value), float(np.ptp(samples)))  # sums in another order differ in their last digits
    below, above = int((samples < value - tie).sum()), int((samples > value + tie).sum())
    bias = _NORMAL.inv_cdf((1 + (below - above) / (len(samples) + 1)) / 2)
    influence = without.mean() - without if len(without) else np.zeros(1)
    spread = float((influence**2).sum())
    negligible = len(influence) * (_TIE * abs(value)) ** 2
    acceleration = float((influence**3).sum()) / (6 * spread**1.5) if spread > negligible else 0.0
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shift = bias + _NORMAL.inv_cdf(tail)
        slope = 1 - acceleration * shift  # at most 0 beyond the pole, where the end is the farthest resample
        ends.append(_NORMAL.cdf(bias + shift / slope) if slope > 0 else float(shift > 0))
    low, high = np.percentile(samples, [100 * end for end in ends])
    return float(low), float(high)


def _percentiles(samples: Floats) -> tuple[Floats, Floats]:
    """Lower and upper percentile of each column of (B, k), nan values left out; nan where all are."""
    tails = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
    defined = [column[~np.isnan(column)] for column in samples.T]
    ends = [np.percentile(column, tails) if len(column) else np.array([np.nan, np.nan]) for column in defined]
    return np.array([end[0] for end in ends]), np.array([end[1] for end in ends])


def _p_value(samples: Floats, observed: float) -> float:
    """(1 + #{|sample| >= |observed|}) / (B + 1); an undefined sample counts as being at least as large."""
    smaller = np.abs(samples) < abs(observed) * (1 - _TIE)  # False for nan
    return (1 + int((~smaller).sum())) / (len(samples) + 1)


def _check(stats: Sequence[Floats], metrics: Sequence[Resampled | Curve], n_resamples: int) -> int:
    """The common number of questions."""
    if n_resamples < 1:
        raise ConfigError(f"significance.n_resamples: must be >= 1, got {n_resamples}")
    if not stats or len(stats) != len(metrics):
        raise DataError(f"significance: {len(stats)} tables of statistics for {len(metrics)} metrics")
    sizes = {len(s) for s in stats}
    if len(sizes) != 1 or 0 in sizes:
        raise DataError(f"significance: tables must have the same number of questions, at least 1; got {sorted(sizes)}")
    return sizes.pop()


def ratio(stats: Floats, name: str) -> float:
    """stats[0] / stats[1] of summed statistics (d,).  Nothing counted: NotComputable naming the metric."""
    if not stats[1] > 0:
        raise NotComputable(f"{name}: undefined, it has no value on any question")
    return float(stats[0] / stats[1])


def ratio_many(stats: Floats) -> Floats:
    """The same for many sums at once: (B, d) -> (B,), nan where nothing was counted."""
    values = np.full(len(stats), np.nan)
    np.divide(stats[:, 0], stats[:, 1], out=values, where=stats[:, 1] > 0)
    return values


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean for `sqa.core.significance`: stats = [sum of values, number of values]; undefined where there are none."""

    name: str

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


def means(values: Floats) -> Floats:
    """(n,) values -> (n, 2) statistics of `Mean`."""
    return np.stack([values, np.ones(len(values))], axis=1)


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
