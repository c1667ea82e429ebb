"""Differences of systems, training runs and values of k, over questions (sqa/core/significance.py).

    approximate randomisation p = (1 + #{|d*_b| >= |d|}) / (B + 1), where d is the observed difference, and resample b
                              exchanges the two systems' statistics on a random half of the questions; two-sided
                              (Noreen 1989; Riezler and Maxwell 2005)
    interval of a difference  all shifts x that this test does not reject at .05, if one system is better by x on every
                              question (Hartigan 1969).  Resample b counts for every x between (d - d*_b) / (1 - s_b)
                              and (d + d*_b) / (1 + s_b), where s_b is the share of questions kept minus the share
                              exchanged.  The interval therefore excludes 0 if and only if p <= .05.  It is unbounded
                              if fewer than DIFFERING questions differ, since p then cannot be .05 or less
    several levels            data sets, training runs and guessers: Student's t with the variances of questions and of
                              each level added (Satterthwaite 1946), see `compare_levels`
    permutation               p = (1 + #{permuted >= observed}) / (B + 1), one-sided, for n questions under m conditions
                              (values of k).  If the condition does not matter, the m rows of a question are
                              exchangeable.  The statistic may be a maximum over conditions
                              (Pitman 1937; Westfall and Young 1993)

Ties and undefined values count against a difference: a system compared with itself has p = 1.  Coverage and false
positives are simulated in tests/property/test_coverage_of_intervals.py.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from sqa.core import significance as resampling
from sqa.core.errors import DataError
from sqa.core.significance import CELLS, LEVEL, TIE, Interval, Resampled
from sqa.core.types import Bools, Floats

DIFFERING = 6  # least number of differing questions that can bound a difference: 2 / 2^5 > .05 >= 2 / 2^6
PERMUTATIONS = 20_000  # permutations per test
_BLOCK = 2_000  # permutations per block
_SWAP, _INSIDE = range(2, 4)  # random streams that share a seed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two systems on the same questions: a minus b, its 95% interval and two-sided p-value.

    The interval excludes 0 if and only if p <= .05.  Its ends are infinite if the questions are too few to bound the
    difference.
    """

    a: float
    b: float
    diff: float  # a - b
    low: float
    high: float
    p: float  # from 1 / (resamples + 1) to 1
    n: int  # number of questions

    @property
    def value(self) -> float:
        """The difference a - b, shown as the value of a results row."""
        return self.diff


def compare_many(
    pairs: Sequence[tuple[Floats, Floats]], metrics: Sequence[Resampled], n_resamples: int = 1000, seed: int = 0
) -> list[Comparison]:
    """Return the comparison of two systems by each metric, all from the same resamples.

    pairs: for each metric, the statistics of both systems, two arrays of shape (n, d_i).  Row i of all arrays is the
    same question.
    """
    n = resampling.common_size([table for pair in pairs for table in pair], [*metrics, *metrics], n_resamples)
    for (a, b), metric in zip(pairs, metrics, strict=True):
        if a.shape != b.shape:
            raise DataError(f"{metric.name}: statistics of {a.shape} and {b.shape} cannot be compared")
    kept, swapped = _exchanges(pairs, metrics, n_resamples, seed)
    comparisons = []
    for (a, b), metric, null in zip(pairs, metrics, swapped, strict=True):
        value_a, value_b = metric.score(a.sum(axis=0)), metric.score(b.sum(axis=0))
        diff = value_a - value_b
        comparisons.append(Comparison(value_a, value_b, diff, *_enough([(a, b)], *_tested(diff, null, kept)), n))
    return comparisons


def compare(a: Floats, b: Floats, metric: Resampled, n_resamples: int = 1000, seed: int = 0) -> Comparison:
    """Return the paired comparison of two systems' statistics (n, d) on the same questions in the same order."""
    return compare_many([(a, b)], [metric], n_resamples, seed)[0]


def compare_pooled(pairs: Sequence[tuple[Floats, Floats]], metric: Resampled, n_resamples: int = 1000) -> Comparison:
    """Return the comparison of two systems, averaged over data sets with equal weights.

    pairs: for each data set, the statistics of both systems, two arrays of shape (n_i, d).  Questions are exchanged
    within data sets.
    """
    drawn = [_exchanges([pair], [metric], n_resamples, seed) for seed, pair in enumerate(pairs)]
    kept, null = np.mean([kept for kept, _ in drawn], axis=0), np.mean([null for _, [null] in drawn], axis=0)
    a, b = (float(np.mean([metric.score(pair[side].sum(axis=0)) for pair in pairs])) for side in (0, 1))
    return Comparison(a, b, a - b, *_enough(pairs, *_tested(a - b, null, kept)), sum(len(pair[0]) for pair in pairs))


def _enough(pairs: Sequence[tuple[Floats, Floats]], low: float, high: float, p: float) -> tuple[float, float, float]:
    """Return (low, high, p), without bounds and with the exact least p if fewer than DIFFERING questions differ."""
    differing = sum(int((a != b).any(axis=1).sum()) for a, b in pairs)
    return (low, high, p) if differing >= DIFFERING else (-np.inf, np.inf, max(p, min(1.0, 2.0 ** (1 - differing))))


def _exchanges(
    pairs: Sequence[tuple[Floats, Floats]], metrics: Sequence[Resampled], n_resamples: int, seed: int
) -> tuple[Floats, list[Floats]]:
    """Return s_b (B,), the share of questions kept minus that exchanged, and d*_b (B,) for each metric."""
    n = len(pairs[0][0])
    gaps = [_exchanged(m, a.sum(axis=0), b.sum(axis=0)) for (a, b), m in zip(pairs, metrics, strict=True)]
    tables = [np.ones((n, 1)), *(b - a for a, b in pairs)]
    kept, *swapped = resampling.score_sums(
        tables, [lambda counts: 1 - 2 * counts[:, 0] / n, *gaps], _swap_weights(n, n_resamples, seed)
    )
    return kept, swapped


def _tested(diff: float, null: Floats, kept: Floats) -> tuple[float, float, float]:
    """Return (low, high, p) of a difference from the resampled differences (B,) and their s_b (B,)."""
    counts = ~_smaller(np.abs(null), np.abs(np.asarray(diff)))  # resamples that count against a difference
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(diff - null) / (1 - kept), (diff + null) / (1 + kept)])
    unbounded = np.isnan(null) | (np.abs(kept) > 1 - TIE)  # undefined, or none or all of the questions exchanged
    low = np.where(unbounded, -np.inf, np.where(counts, np.minimum(ends.min(axis=0), 0), ends.min(axis=0)))
    high = np.where(unbounded, np.inf, np.where(counts, np.maximum(ends.max(axis=0), 0), ends.max(axis=0)))
    p = (1 + int((counts | unbounded).sum())) / (len(null) + 1)
    needed = int((1 - LEVEL) * (len(null) + 1) + TIE)  # a shift is rejected if fewer resamples count for it
    if not needed:
        return -np.inf, np.inf, p
    return float(np.sort(low)[needed - 1]), float(np.sort(high)[-needed]), p


def compare_levels(
    a: Floats, b: Floats, metric: Resampled, n_resamples: int = 1000, same: Sequence[bool] = (True,)
) -> Comparison:
    """Return the comparison of two systems' mean scores, with an interval over questions and other levels.

    a, b: statistics of shape (l_1, ..., l_m, n, d), crossed over m levels (guessers, training runs) and n questions.
    same: for each level, whether both systems have the same members.  The squared standard error is the sum of the
    bootstrap variance over questions and, for each level, the variance of its members' means divided by their number,
    or the variance of their differences if the members are the same.  The quantile is that of Student's t with
    Satterthwaite's degrees of freedom.  A level with one member adds nothing, so the result holds for this member
    only.
    """
    variances = [_over_questions(a, metric, n_resamples, b)]
    for axis, together in enumerate(same):
        of_a, of_b = (_means_of(tables, metric, axis) for tables in (a, b))
        variances += [_of_mean(of_a - of_b)] if together else [_of_mean(of_a), _of_mean(of_b)]
    value_a, value_b = (float(_scores(tables.sum(axis=-2), metric).mean()) for tables in (a, b))
    return Comparison(value_a, value_b, value_a - value_b, *_by_t(value_a - value_b, variances), a.shape[-2])


def interval_over_levels(tables: Floats, metric: Resampled, n_resamples: int = 1000) -> Interval:
    """Return the mean score of a system with its interval; `tables` and method as in `compare_levels`."""
    variances = [_over_questions(tables, metric, n_resamples)]
    variances += [_of_mean(_means_of(tables, metric, axis)) for axis in range(tables.ndim - 2)]
    value = float(_scores(tables.sum(axis=-2), metric).mean())
    low, high, _ = _by_t(value, variances)
    return Interval(value, low, high, tables.shape[-2])


def _scores(sums: Floats, metric: Resampled) -> Floats:
    """Return the scores (l_1, ..., l_m) of sums of statistics (l_1, ..., l_m, d)."""
    return metric.score_many(sums.reshape(-1, sums.shape[-1])).reshape(sums.shape[:-1])


def _means_of(tables: Floats, metric: Resampled, axis: int) -> Floats:
    """Return the mean score of each member of a level (l,), averaged over the other levels."""
    scores = _scores(tables.sum(axis=-2), metric)
    return np.asarray(scores.mean(axis=tuple(i for i in range(scores.ndim) if i != axis)))


def _over_questions(a: Floats, metric: Resampled, n_resamples: int, b: Floats | None = None) -> tuple[float, int]:
    """Return the variance over questions of the mean score of `a`, minus that of `b` if given, and its freedom."""
    n = a.shape[-2]
    members = [table for tables in (a, b) if tables is not None for table in tables.reshape(-1, *tables.shape[-2:])]
    resampled = resampling.score_sums(
        members, [metric.score_many] * len(members), resampling.bootstrap_weights(n, n_resamples, 0)
    )
    size = prod(a.shape[:-2])
    of_a, of_b = np.mean(resampled[:size], axis=0), np.mean(resampled[size:], axis=0) if b is not None else 0.0
    return float(np.var(of_a - of_b, ddof=1)), n - 1


def _of_mean(values: Floats) -> tuple[float, int]:
    """Return the variance of the mean of values (l,) and its degrees of freedom; zeros for a single value."""
    return (float(np.var(values, ddof=1)) / len(values), len(values) - 1) if len(values) > 1 else (0.0, 0)


def _by_t(value: float, variances: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """Return (low, high, p) of a value from variances with their degrees of freedom; nan if there are none."""
    total = sum(variance for variance, _ in variances)
    if not any(freedom for _, freedom in variances) or np.isnan(total):
        return np.nan, np.nan, 1.0
    if total == 0:
        return value, value, float(value == 0)
    freedom = max(1.0, total**2 / sum(variance**2 / freedom for variance, freedom in variances if freedom))
    half = resampling.t_quantile((1 + LEVEL) / 2, freedom) * total**0.5
    return value - half, value + half, resampling.t_two_sided(value / total**0.5, freedom)


def p_value(observed: Floats, null: Floats) -> Floats:
    """Return the one-sided p-values (R,) of R observed statistics under their null distribution (B, R); 1 for nan."""
    result: Floats = (1 + (~_smaller(null, observed)).sum(axis=0)) / (len(null) + 1)
    return np.where(np.isnan(observed), 1.0, result)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values (Holm 1979).

    Rejecting the hypotheses with an adjusted p-value <= alpha has a family-wise error rate of at most alpha.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = least
    return adjusted


# ------------------------------------------------------------------------------------------------------- permutations


def permuted_sums(table: Floats, permutations: int, seed: int) -> Iterator[Floats]:
    """Permute the conditions of a table (n, m, c) within each question, and yield the sums over questions.

    Each block (b, m, c) has the sums of b permutations.  The same seed and shape give the same permutations for every
    table.
    """
    seeds = np.random.default_rng([seed, _INSIDE]).integers(2**64, size=permutations, dtype=np.uint64)
    table = np.asarray(table, dtype=np.float64)
    differs = table != table[:, :1]  # values that are equal under all conditions need no permutation
    questions, columns = np.flatnonzero(differs.any(axis=(1, 2))), np.flatnonzero(differs.any(axis=(0, 1)))
    moving, still = table[questions][..., columns], table[~differs.any(axis=(1, 2))].sum(axis=0)
    still = still + table[questions].sum(axis=0) * ~differs.any(axis=(0, 1))
    size = max(1, min(_BLOCK, CELLS // table[0].size))
    for start in range(0, len(seeds), size):
        block = seeds[start : start + size]
        sums = np.repeat(still[None], len(block), axis=0)
        sums[..., columns] += _permuted(moving, questions, block)
        yield sums


def null_of(table: Floats, statistic: Callable[[Floats], Floats], permutations: int, seed: int) -> Floats:
    """Return the values (B, R) of `statistic`, which maps sums (b, m, c) to (b, R), for all permutations of a table."""
    return np.concatenate([statistic(sums) for sums in permuted_sums(table, permutations, seed)])


# ------------------------------------------------------------------------------------------------------------ drawing


def _swap_weights(n: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks (b, n) of 0/1 weights: 1 for questions on which the two systems are exchanged."""
    rng = np.random.default_rng([seed, _SWAP])
    for rows in resampling.block_sizes(n, n_resamples):
        yield rng.integers(0, 2, size=(rows, n)).astype(np.float64)


def _exchanged(metric: Resampled, a: Floats, b: Floats) -> Callable[[Floats], Floats]:
    """Return a function that maps w @ (b - a) to the differences after the questions with weight 1 are exchanged.

    a and b: the two systems' statistics, summed over questions, (d,).
    """
    return lambda change: metric.score_many(a + change) - metric.score_many(b - change)


def _smaller(null: Floats, observed: Floats) -> Bools:
    return null < observed - TIE * np.abs(observed)  # False for nan


def _permuted(table: Floats, questions: Any, seeds: Any) -> Floats:
    """Return the sums (b, m, c) of a table (n, m, c), each question's rows permuted separately for each seed (b,).

    The shuffle is Fisher and Yates's, with the upper 32 bits of Marsaglia's xorshift as random numbers.  The
    generator starts at Steele's mixture of the seed and the question's index, so a permutation depends on nothing
    else.
    """
    rows, upper, sums = np.arange(len(seeds)), np.uint64(32), np.zeros((len(seeds), *table.shape[1:]))
    for question, values in zip(questions, table, strict=True):
        state = seeds + np.array([question], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
        order = np.tile(np.arange(len(values)), (len(seeds), 1))  # (b, m)
        for last in range(len(values) - 1, 0, -1):
            other = (((state >> upper) * np.uint64(last + 1)) >> upper).astype(np.int64)
            order[rows, other], order[:, last] = order[:, last].copy(), order[rows, other]
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
        sums += values.take(order, axis=0)
    return sums
