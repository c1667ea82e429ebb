"""Tests against "the condition does not matter": the conditions of each question change places at random.

The same n questions are measured under m conditions (values of k, systems); all statistics are additive.  If the
condition does not matter, the m rows of a question are exchangeable, and the whole table is as likely as any that
permutes the rows inside questions.  A statistic of the table, a maximum over chosen conditions included, then has a
known distribution: that over such permutations.  p = (1 + #{permuted >= observed}) / (B + 1); what is undefined counts
as at least as large.  (Pitman 1937; the maximum: Westfall and Young 1993.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sqa.core.arrays import Floats
from sqa.core.errors import ConfigError, DataError

_CELLS = 4_000_000  # weights held at a time: 32 MB
_INSIDE, _SETS = 3, 4  # streams of random numbers that share a seed with those of sqa/core/significance.py
_TIE = 1e-9  # differences closer than this, relative to the observed one, are equal


def permuted_sums(table: Floats, permutations: int, seed: int) -> Iterator[Floats]:
    """Blocks (b, m, c) of sums over questions of a table (n, m, c), its conditions permuted inside each question.

    The same seed and shape give the same permutations for every table.
    """
    if permutations < 1:
        raise ConfigError(f"permutations: must be >= 1, got {permutations}")
    if table.ndim != 3 or 0 in table.shape[:2]:
        raise DataError(f"permutation: expected questions x conditions x statistics, got {table.shape}")
    n, m, c = table.shape
    rng, flat = np.random.default_rng([seed, _INSIDE]), table.reshape(n * m, c)
    size = max(1, _CELLS // (n * m * m))
    for start in range(0, permutations, size):
        b = min(size, permutations - start)
        drawn = rng.random((b, n, m), dtype=np.float32).argsort(axis=2)  # which condition goes to each place
        weights = np.zeros((b, m, n, m))
        np.put_along_axis(weights, drawn.transpose(0, 2, 1)[..., None], 1.0, axis=3)
        yield (weights.reshape(b * m, n * m) @ flat).reshape(b, m, c)


def shuffled(tables: Sequence[Floats], sets: int, seed: int) -> list[Floats]:
    """`sets` copies of each table (n, m, d) -> (n, m, d, sets), the conditions permuted inside each question.

    The tables (one for each metric) are permuted alike.
    """
    n, m = tables[0].shape[:2]
    order = np.random.default_rng([seed, _SETS]).random((sets, n, m)).argsort(axis=2).transpose(1, 2, 0)  # (n, m, sets)
    return [np.take_along_axis(table[..., None], order[:, :, None, :], axis=1) for table in tables]


def p_value(observed: Floats, null: Floats) -> Floats:
    """observed (R,), null (B, R) -> (R,), one-sided: how often chance gives as much or more."""
    smaller = null < observed - _TIE * np.abs(observed)  # False for nan
    result: Floats = (1 + (~smaller).sum(axis=0)) / (len(null) + 1)
    return np.where(np.isnan(observed), 1.0, result)


def null_of(
    table: Floats, statistic: Callable[[Floats], Floats], permutations: int, seed: int, sets: int = 1
) -> Floats:
    """(B, sets): a statistic of every permuted table.

    The table is (n, m, d * sets); the statistic takes sums (b, m, d * sets) and gives (b, sets).
    """
    blocks = [statistic(sums) for sums in permuted_sums(table, permutations, seed)]
    return np.concatenate(blocks).reshape(-1, sets)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979): rejecting those at most alpha errs anywhere with a chance of alpha at most."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = least
    return adjusted
