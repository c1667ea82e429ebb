"""Differences of systems, training runs and values of k, by resampling questions (sqa/core/significance.py).

    interval of a difference  plain percentiles, which are valid here while BCa is not (Efron 1979; Koehn 2004); their
                              coverage: tests/property/test_coverage_of_intervals.py
    paired bootstrap          p = (1 + #{|d*_b - d| >= |d|}) / (B + 1), d the observed difference; two-sided
    approximate randomisation p = (1 + #{|d*_b| >= |d|}) / (B + 1), where resample b exchanges the two systems'
                              statistics on a random half of the questions; two-sided
                              (Noreen 1989; Riezler and Maxwell 2005)
    permutation               p = (1 + #{permuted >= observed}) / (B + 1), one-sided, for n questions under m conditions
                              (values of k).  If the condition does not matter, the m rows of a question are
                              exchangeable.  The statistic may be a maximum over conditions
                              (Pitman 1937; Westfall and Young 1993)

Ties and undefined values count against a difference: a system compared with itself has p = 1.  Data sets
(`compare_pooled`), training runs (`compare_trainings`) and guessers (`compare_levels`) are levels above the question.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqa.core.errors import DataError
from sqa.core.significance import (
    CELLS,
    TIE,
    Interval,
    Resampled,
    block_sizes,
    bootstrap_weights,
    common_size,
    percentiles,
    score_sums,
)
from sqa.core.types import Bools, Floats

PERMUTATIONS = 20_000  # permutations per test
STOP = 0.05  # a permutation test ends early once its p-value is above this
_BLOCK = 2_000  # permutations per block
_SWAP, _INSIDE, _SETS, _QUESTIONS, _TRAININGS = range(2, 7)  # random streams that share a seed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two systems on the same questions: a minus b, percentile interval, two-sided p-values."""

    a: float
    b: float
    diff: float  # a - b
    low: float
    high: float
    p_bootstrap: float  # from 1/(resamples+1) to 1
    p_randomization: float
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
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    n = common_size([*a, *b], [*metrics, *metrics], n_resamples)
    for left, right, metric in zip(a, b, metrics, strict=True):
        if left.shape != right.shape:
            raise DataError(f"{metric.name}: statistics of {left.shape} and {right.shape} cannot be compared")
    points = [(m.score(x.sum(axis=0)), m.score(y.sum(axis=0))) for x, y, m in zip(a, b, metrics, strict=True)]
    scorers = [metric.score_many for metric in (*metrics, *metrics)]
    resampled = score_sums([*a, *b], scorers, bootstrap_weights(n, n_resamples, seed))
    gaps = [_exchanged(m, x.sum(axis=0), y.sum(axis=0)) for x, y, m in zip(a, b, metrics, strict=True)]
    changes = [y - x for x, y in zip(a, b, strict=True)]
    swapped = score_sums(changes, gaps, _swap_weights(n, n_resamples, seed))
    comparisons, m = [], len(metrics)
    for i, (value_a, value_b) in enumerate(points):
        diff = value_a - value_b
        boot = resampled[i] - resampled[m + i]  # (B,)
        p_bootstrap, p_swap = (float(p_value(np.abs(diff), np.abs(null))) for null in (boot - diff, swapped[i]))
        comparisons.append(Comparison(value_a, value_b, diff, *percentiles(boot), p_bootstrap, p_swap, n))
    return comparisons


def compare(a: Floats, b: Floats, metric: Resampled, n_resamples: int = 1000, seed: int = 0) -> Comparison:
    """Return the paired comparison of two systems' statistics (n, d) on the same questions in the same order."""
    return compare_many([(a, b)], [metric], n_resamples, seed)[0]


def compare_pooled(pairs: Sequence[tuple[Floats, Floats]], metric: Resampled, n_resamples: int = 1000) -> Interval:
    """Return the difference of two systems, averaged over data sets with equal weights, with its percentile interval.

    pairs: for each data set, the statistics of both systems, two arrays of shape (n_i, d).  Questions are resampled
    within data sets.
    """
    rng, value, samples = np.random.default_rng(0), 0.0, np.zeros(n_resamples)
    for a, b in pairs:
        weights = _multinomial(rng, len(a), n_resamples)
        value += (metric.score(a.sum(axis=0)) - metric.score(b.sum(axis=0))) / len(pairs)
        samples += (metric.score_many(weights @ a) - metric.score_many(weights @ b)) / len(pairs)
    return Interval(value, *percentiles(samples), sum(len(a) for a, _ in pairs))


def compare_trainings(
    a: Sequence[Floats], b: Sequence[Floats], metric: Resampled, n_resamples: int = 1000, same: bool = False
) -> Interval:
    """Return one system's mean score over training runs minus another system's, with its percentile interval.

    a, b: one array of statistics (n, d) per training run; row i of all arrays is the same question.  Both questions
    and training runs are resampled.  same: whether a[i] and b[i] come from the same training run (one model at two
    values of k) and are therefore drawn together.
    """
    if not a or not b or len({table.shape for table in (*a, *b)}) != 1:
        shapes = ", ".join(str(table.shape) for table in (*a, *b))
        raise DataError(f"{metric.name}: expected training runs of two systems on the same questions, got {shapes}")
    return compare_levels(np.stack(a), np.stack(b), metric, n_resamples, (same,))


def compare_levels(
    a: Floats, b: Floats, metric: Resampled, n_resamples: int = 1000, same: Sequence[bool] = (True,)
) -> Interval:
    """Return the mean score of one system minus that of another, with a percentile interval over several levels.

    a, b: statistics of shape (l_1, ..., l_m, n, d), crossed over m levels (guessers, training runs) and n questions.
    The questions and each level are resampled independently (the pigeonhole bootstrap, Owen 2007).  same: for each
    level, whether both systems have the same members, which are then drawn together.
    """
    weights = _multinomial(np.random.default_rng([0, _QUESTIONS]), a.shape[-2], n_resamples)
    rng, drawn = np.random.default_rng([0, _TRAININGS]), []
    for size_a, size_b, together in zip(a.shape[:-2], b.shape[:-2], same, strict=True):
        first, second = (rng.integers(0, size, (n_resamples, size)) for size in (size_a, size_b))
        drawn.append((first, first if together else second))

    (value_a, of_a), (value_b, of_b) = (
        _over_levels(tables, metric, weights, [pair[side] for pair in drawn]) for side, tables in enumerate((a, b))
    )
    return Interval(value_a - value_b, *percentiles(of_a - of_b), a.shape[-2])


def interval_over_levels(tables: Floats, metric: Resampled, n_resamples: int = 1000) -> Interval:
    """Return the mean score of a system with its percentile interval; `tables` as in `compare_levels`."""
    weights = _multinomial(np.random.default_rng([0, _QUESTIONS]), tables.shape[-2], n_resamples)
    rng = np.random.default_rng([0, _TRAININGS])
    drawn = [rng.integers(0, size, (n_resamples, size)) for size in tables.shape[:-2]]
    value, resampled = _over_levels(tables, metric, weights, drawn)
    return Interval(value, *percentiles(resampled), tables.shape[-2])


def _over_levels(
    tables: Floats, metric: Resampled, weights: Floats, drawn: Sequence[np.ndarray[Any, Any]]
) -> tuple[float, Floats]:
    """Return the mean score of `tables`, of shape (l_1, ..., l_m, n, d), and the mean scores (B,) of the resamples.

    weights: (B, n), how often each question is drawn.  drawn: for each level, the indices (B, l) of the drawn members.
    """
    levels, flat = tables.shape[:-2], tables.reshape(-1, *tables.shape[-2:])
    scores = np.stack([metric.score_many(weights @ table) for table in flat], axis=1)
    index = [np.arange(len(weights)).reshape(-1, *[1] * len(levels))]
    for axis, members in enumerate(drawn):
        index.append(members.reshape(-1, *(levels[axis] if axis == i else 1 for i in range(len(levels)))))
    resampled = scores.reshape(len(weights), *levels)[tuple(index)]
    value = metric.score_many(flat.sum(axis=1)).mean()
    return float(value), resampled.reshape(len(weights), -1).mean(axis=1)


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
    return _sums(table, _permutation_seeds(permutations, seed))


def null_of(table: Floats, statistic: Callable[[Floats], Floats], permutations: int, seed: int) -> Floats:
    """Return the values (B, R) of `statistic`, which maps sums (b, m, c) to (b, R), for all permutations of a table."""
    return np.concatenate([statistic(sums) for sums in permuted_sums(table, permutations, seed)])


def p_values(
    table: Floats, statistic: Callable[[Floats], Floats], observed: Floats, permutations: int, seed: int
) -> Floats:
    """Return the one-sided p-values (R,) of R tables, given as one array (n, m, d, R).

    observed: (R,), the statistic of each table.  statistic: as in `null_of`.
    """
    seeds = _permutation_seeds(permutations, seed)
    as_large, drawn = np.zeros(len(observed), np.int64), np.zeros(len(observed), np.int64)
    for start in range(0, permutations, _BLOCK):
        going = np.flatnonzero(as_large < STOP * (permutations + 1))
        if not len(going):
            break
        block, flat = seeds[start : start + _BLOCK], table[..., going].reshape(*table.shape[:2], -1)
        null = np.concatenate([statistic(sums) for sums in _sums(flat, block)])  # (b, going)
        as_large[going] += (~_smaller(null, observed[going])).sum(axis=0)
        drawn[going] += len(block)
    return np.where(np.isnan(observed), 1.0, (1 + as_large) / (drawn + 1))


def shuffled(table: Floats, sets: int, seed: int) -> Floats:
    """Return an array (n, m, d, sets) of copies of a table (n, m, d), with conditions permuted within each question."""
    n, m = table.shape[:2]
    order = np.random.default_rng([seed, _SETS]).random((sets, n, m)).argsort(axis=2).transpose(1, 2, 0)  # (n, m, sets)
    return np.take_along_axis(table[..., None], order[:, :, None, :], axis=1)


# ------------------------------------------------------------------------------------------------------------ drawing


def _swap_weights(n: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks (b, n) of 0/1 weights: 1 for questions on which the two systems are exchanged."""
    rng = np.random.default_rng([seed, _SWAP])
    for rows in block_sizes(n, n_resamples):
        yield rng.integers(0, 2, size=(rows, n)).astype(np.float64)


def _multinomial(rng: np.random.Generator, n: int, n_resamples: int) -> Floats:
    """Return all question weights (n_resamples, n) at once, for comparisons with levels above the question."""
    return rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)


def _exchanged(metric: Resampled, a: Floats, b: Floats) -> Callable[[Floats], Floats]:
    """Return a function that maps w @ (b - a) to the differences after the questions with weight 1 are exchanged.

    a and b: the two systems' statistics, summed over questions, (d,).
    """
    return lambda change: metric.score_many(a + change) - metric.score_many(b - change)


def _smaller(null: Floats, observed: Floats) -> Bools:
    return null < observed - TIE * np.abs(observed)  # False for nan


def _permutation_seeds(permutations: int, seed: int) -> Any:
    """Return (permutations,) uint64: the seed of each permutation's random numbers."""
    return np.random.default_rng([seed, _INSIDE]).integers(2**64, size=permutations, dtype=np.uint64)


def _sums(table: Floats, seeds: Any) -> Iterator[Floats]:
    """Yield blocks (b, m, c) of sums over questions: one permutation of a table (n, m, c) for each seed (B,)."""
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
