"""Intervals by resampling QUESTIONS, for any metric that is a score of summed statistics.

Sentences of one question are not independent, so the question is the unit.  A resample is a vector of weights w
(n,), and its statistics are w @ stats: one matrix product scores thousands of resamples.  The same seed and number
of questions give the same resamples for every metric and system, so the result is a function of its arguments.

    interval of a value       95%: BCa, bias-corrected and accelerated percentiles of the score over B resamples with
                              replacement (Efron 1987).  Plain percentiles are too low if most questions win nothing.
                              Below FEW questions the level is raised to that of Student's t (Hesterberg 2015)
    band of a curve           plain percentiles at every point

Comparisons of systems, training runs or values of k are in sqa/core/differences.py.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol, runtime_checkable

import numpy as np

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.types import Floats

LEVEL = 0.95  # confidence level of intervals and bands
CELLS = 4_000_000  # weights or sums in memory at a time: 32 MB
FEW = 20  # below this number of questions, the level of an interval is raised
TIE = 1e-9  # values whose relative difference is below this count as equal
_BOOTSTRAP = 1  # random stream; sqa/core/differences.py has the others
_NORMAL = NormalDist()


class Resampled(Protocol):
    """The part of a metric's interface that intervals and tests use."""

    @property
    def name(self) -> str: ...

    def score(self, stats: Floats) -> float:
        """Return the score of a sum of statistics (d,); raises NotComputable if it is undefined."""

    def score_many(self, stats: Floats) -> Floats:
        """Return the scores (B,) of sums of statistics (B, d), equal to `score` on each; nan if undefined."""


@runtime_checkable
class ScoredTogether(Protocol):
    """A metric whose statistics need not be additive over questions; `score_many` then returns nan for a sum."""

    def score_all(self, stats: Floats) -> float:
        """Return the score of all questions (n, d) together."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A score on all questions and its 95% interval; the ends are nan if no resample has a value."""

    value: float
    low: float
    high: float
    n: int  # number of questions


@dataclass(frozen=True, slots=True)
class Mean:
    """Metric that is a mean: stats = [sum of values, number of values], see `means`; undefined without values."""

    name: str

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


def means(values: Floats) -> Floats:
    """Append a column of ones to the values of n questions, to average them.

    Values (n,) give statistics (n, 2) for `Mean`; values (n, k) give statistics (n, k + 1) for `mean_curve`.
    """
    return np.column_stack([values, np.ones(len(values))])


def mean_curve(stats: Floats) -> Floats:
    """Return means (B, k) from summed statistics of `means`, (B, k + 1), for `bootstrap_band`."""
    return np.asarray(stats[:, :-1] / stats[:, -1:])


def ratio(stats: Floats, name: str) -> float:
    """Return the ratio stats[0] / stats[1] of summed statistics (d,).

    Raises NotComputable with the metric's name if stats[1] is 0.
    """
    if not stats[1] > 0:
        raise NotComputable(f"{name}: undefined, it has no value on any question")
    return float(stats[0] / stats[1])


def ratio_many(stats: Floats) -> Floats:
    """Return the ratios stats[:, 0] / stats[:, 1] (B,) of summed statistics (B, d); nan if the denominator is 0."""
    values = np.full(len(stats), np.nan)
    np.divide(stats[:, 0], stats[:, 1], out=values, where=stats[:, 1] > 0)
    return values


def total(stats: Floats, metric: Resampled) -> float:
    """Return a metric's score of all questions (n, d); raises NotComputable if it is undefined."""
    return metric.score_all(stats) if isinstance(metric, ScoredTogether) else metric.score(stats.sum(axis=0))


# ---------------------------------------------------------------------------------------------------------- intervals


def bootstrap_many(
    stats: Sequence[Floats], metrics: Sequence[Resampled], n_resamples: int = 1000, seed: int = 0
) -> list[Interval]:
    """Return the interval of each metric, all from the same resamples.

    stats: for each metric, an array (n, d_i) with one row per question.  Raises NotComputable if a metric is undefined
    for the questions as a whole.
    """
    n = common_size(stats, metrics, n_resamples)
    values = [total(s, metric) for s, metric in zip(stats, metrics, strict=True)]
    samples = score_sums(stats, [metric.score_many for metric in metrics], bootstrap_weights(n, n_resamples, seed))
    intervals = []
    for value, scores, s, metric in zip(values, samples, stats, metrics, strict=True):
        without = metric.score_many(s.sum(axis=0) - s)  # (n,), each question left out once
        intervals.append(Interval(value, *bca(value, scores, without, _level(n)), n))
    return intervals


def bootstrap(stats: Floats, metric: Resampled, n_resamples: int = 1000, seed: int = 0) -> Interval:
    """Return the score of stats (n, d) summed over questions, with its BCa interval."""
    return bootstrap_many([stats], [metric], n_resamples, seed)[0]


def bootstrap_band(
    stats: Floats, curve: Callable[[Floats], Floats], n_resamples: int = 1000, seed: int = 0
) -> list[Interval]:
    """Return a curve's k values on all questions, each with its percentile interval.

    curve: maps sums (B, d) to (B, k).
    """
    n = common_size([stats], [curve], n_resamples)
    [samples] = score_sums([stats], [curve], bootstrap_weights(n, n_resamples, seed))  # (B, k)
    values = curve(stats.sum(axis=0, keepdims=True))[0].tolist()
    return [Interval(value, *percentiles(column), n) for value, column in zip(values, samples.T, strict=True)]


def bca(value: float, samples: Floats, without: Floats, level: float = LEVEL) -> tuple[float, float]:
    """Return the BCa interval of a value from its resamples (B,) and the values with each question left out (n,).

    Each end is the percentile F(b + (b + z) / (1 - a (b + z))), F normal, z the normal quantile of the tail.  The
    bias b is the normal quantile of the share of resamples below the value.  Ties count half, and the value itself
    is included, so b is finite.  The influence of a question is the mean of `without` minus its value.  The
    acceleration a is the sum of cubes of the influences over six times the 1.5th power of the sum of squares, or 0
    if all are equal.  Undefined values (nan) are left out; without a defined resample both ends are nan.
    """
    samples, without = samples[~np.isnan(samples)], without[~np.isnan(without)]
    if not len(samples):
        return np.nan, np.nan
    tie = TIE * max(abs(value), float(np.ptp(samples)))  # sums in another order differ in their last digits
    below, above = int((samples < value - tie).sum()), int((samples > value + tie).sum())
    bias = _NORMAL.inv_cdf((1 + (below - above) / (len(samples) + 1)) / 2)
    influence = without.mean() - without if len(without) else np.zeros(1)
    spread = float((influence**2).sum())
    negligible = len(influence) * (TIE * abs(value)) ** 2
    acceleration = float((influence**3).sum()) / (6 * spread**1.5) if spread > negligible else 0.0
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shift = bias + _NORMAL.inv_cdf(tail)
        slope = 1 - acceleration * shift  # it is at most 0 beyond the pole, where the end is the farthest resample
        ends.append(_NORMAL.cdf(bias + shift / slope) if slope > 0 else float(shift > 0))
    low, high = np.percentile(samples, [100 * end for end in ends])
    return float(low), float(high)


def _level(n: int) -> float:
    """Return the level whose BCa interval over n questions covers about LEVEL (Hesterberg 2015, section 4.3).

    A resample of n questions varies less than n new questions do, by sqrt((n - 1) / n), and has normal instead of t
    tails.  No level suffices for 3 questions (tests/property/test_coverage_of_intervals.py prints the coverage).
    """
    if not 1 < n < FEW:
        return LEVEL
    return min(2 * _NORMAL.cdf(np.sqrt(n / (n - 1)) * t_quantile((1 + LEVEL) / 2, n - 1)) - 1, 1 - 1e-9)


def t_quantile(share: float, freedom: float) -> float:
    """Return the quantile of Student's t, for at least one degree of freedom, to four digits.

    With t = sqrt(freedom) tan(x), the density of x is proportional to cos(x)^(freedom - 1).
    """
    angles, cumulative = _t_table(freedom)
    return float(np.sqrt(freedom) * np.tan(np.interp(share, cumulative, angles)))


def t_two_sided(t: float, freedom: float) -> float:
    """Return the two-sided p-value of a value of Student's t."""
    angles, cumulative = _t_table(freedom)
    return float(2 * (1 - np.interp(np.arctan(abs(t) / np.sqrt(freedom)), angles, cumulative)))


def _t_table(freedom: float) -> tuple[Floats, Floats]:
    """Return angles x and the share of Student's t below sqrt(freedom) tan(x)."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, 40_001)
    density = np.cos(angles) ** (freedom - 1)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return angles, cumulative / cumulative[-1]


def percentiles(samples: Floats) -> tuple[float, float]:
    """Return the ends of the percentile interval of samples (B,), ignoring nan; nan if all are nan."""
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return np.nan, np.nan
    low, high = np.percentile(defined, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)


# --------------------------------------------------------------------------------------------------------- resampling


def bootstrap_weights(n: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks (b, n) of multinomial weights, the counts of each question in n draws with replacement."""
    rng = np.random.default_rng([seed, _BOOTSTRAP])
    for rows in block_sizes(n, n_resamples):
        drawn = rng.integers(0, n, size=(rows, n)) + np.arange(rows)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def block_sizes(n: int, n_resamples: int) -> Iterator[int]:
    """Yield the number of resamples of n questions in each block; the sum is `n_resamples`."""
    size = max(1, CELLS // n)
    for start in range(0, n_resamples, size):
        yield min(size, n_resamples - start)


def score_sums(
    stats: Sequence[Floats], scorers: Sequence[Callable[[Floats], Floats]], weights: Iterator[Floats]
) -> list[Floats]:
    """Return the scores of every table of statistics on every resample: (B,) or (B, k) each."""
    columns = np.hstack([np.asarray(s, dtype=np.float64) for s in stats])  # (n, sum of d_i)
    cuts = np.cumsum([s.shape[1] for s in stats])[:-1]
    blocks: list[list[Floats]] = [[] for _ in scorers]
    for block in weights:
        sums = block @ columns  # (b, sum of d_i)
        for i, (scorer, part) in enumerate(zip(scorers, np.split(sums, cuts, axis=1), strict=True)):
            blocks[i].append(scorer(part))
    return [np.concatenate(parts) for parts in blocks]


def common_size(stats: Sequence[Floats], metrics: Sequence[object], n_resamples: int) -> int:
    """Return the number of questions in each table; raises ConfigError or DataError for invalid arguments."""
    if n_resamples < 1:
        raise ConfigError(f"significance.n_resamples: must be >= 1, got {n_resamples}")
    if not stats or len(stats) != len(metrics):
        raise DataError(f"significance: {len(stats)} tables of statistics for {len(metrics)} metrics")
    sizes = {len(s) for s in stats}
    if len(sizes) != 1 or 0 in sizes:
        raise DataError(f"significance: tables must have the same number of questions, at least 1; got {sorted(sizes)}")
    return sizes.pop()
