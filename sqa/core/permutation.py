"""Tests against "the condition does not matter": the conditions of each question change places at random.

The same n questions are measured under m conditions (values of k, systems); all statistics are additive.  If the
condition does not matter, the m rows of a question are exchangeable, and the whole table is as likely as any that
permutes the rows inside questions.  A statistic of the table, a maximum over chosen conditions included, then has a
known distribution: that over such permutations.  p = (1 + #{permuted >= observed}) / (B + 1); what is undefined counts
as at least as large.  (Pitman 1937; the maximum: Westfall and Young 1993.)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sqa.core.errors import ConfigError, DataError
from sqa.core.significance import CELLS, TIE
from sqa.core.types import Bools, Floats

PERMUTATIONS = 20_000  # of every test
STOP = 0.05
_BLOCK = 2_000  # permutations
_INSIDE, _SETS = 3, 4  # streams of random numbers that share a seed with those of sqa/core/significance.py

Statistic = Callable[[Floats], Floats]  # sums (b, m, d * sets) -> values (b, sets)


def permuted_sums(table: Floats, permutations: int, seed: int) -> Iterator[Floats]:
    """Blocks (b, m, c) of sums over questions of a table (n, m, c), its conditions permuted inside each question.

    The same seed and shape give the same permutations for every table.
    """
    _check(table, permutations)
    seeds = _seeds(permutations, seed)
    size = max(1, min(_BLOCK, CELLS // (table.shape[1] * table.shape[2])))
    for start in range(0, permutations, size):
        yield _sums(table, seeds[start : start + size])


def _seeds(permutations: int, seed: int) -> Any:
    """(permutations,) uint64: where the random numbers of each begin."""
    return np.random.default_rng([seed, _INSIDE]).integers(2**64, size=permutations, dtype=np.uint64)


def _sums(table: Floats, seeds: Any) -> Floats:
    """(b, m, c): one permutation for each of the seeds (b,)."""
    table = np.asarray(table, dtype=np.float64)
    differs = table != table[:, :1]  # values that are equal under all conditions need no permutation
    questions, columns = np.flatnonzero(differs.any(axis=(1, 2))), np.flatnonzero(differs.any(axis=(0, 1)))
    moving = table[questions][..., columns]
    part = np.zeros((len(seeds), table.shape[1], len(columns)))
    _permute(moving, questions, seeds, part)
    sums = np.repeat(table[~differs.any(axis=(1, 2))].sum(axis=0)[None], len(seeds), axis=0)
    sums += table[questions].sum(axis=0) * ~differs.any(axis=(0, 1))
    sums[..., columns] += part
    return sums


def _permute(table: Floats, questions: Any, seeds: Any, sums: Floats) -> None:
    """Add to sums (b, m, c) the rows of each question of a table (n, m, c), in an order of its own for each seed (b,).

    Fisher and Yates's shuffle, by the upper 32 bits of Marsaglia's xorshift, which begins at Steele's mixture of the
    seed and the question's number (n,): an order depends on nothing else.
    """
    rows, upper = np.arange(len(seeds)), np.uint64(32)
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


def p_values(table: Floats, statistic: Statistic, observed: Floats, permutations: int, seed: int) -> Floats:
    """(R,): p of R tables (n, m, d, R), one-sided, against `observed` (R,)."""
    _check(table.reshape(*table.shape[:2], -1), permutations)
    seeds, sets = _seeds(permutations, seed), table.shape[3]
    as_large, drawn = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
    for start in range(0, permutations, _BLOCK):
        going = np.flatnonzero(as_large < STOP * (permutations + 1))
        if not len(going):
            break
        block = seeds[start : start + _BLOCK]
        flat = table[..., going].reshape(*table.shape[:2], -1)
        size = max(1, CELLS // flat[0].size)
        parts = [statistic(_sums(flat, block[at : at + size])) for at in range(0, len(block), size)]
        null = np.concatenate(parts)  # (b, going)
        as_large[going] += (~_smaller(null, observed[going])).sum(axis=0)
        drawn[going] += len(block)
    return np.where(np.isnan(observed), 1.0, (1 + as_large) / (drawn + 1))


def shuffled(tables: Sequence[Floats], sets: int, seed: int) -> list[Floats]:
    """`sets` copies of each table (n, m, d) -> (n, m, d, sets), the conditions permuted inside each question.

    The tables (one for each metric) have the same permutations.
    """
    n, m = tables[0].shape[:2]
    order = np.random.default_rng([seed, _SETS]).random((sets, n, m)).argsort(axis=2).transpose(1, 2, 0)  # (n, m, sets)
    return [np.take_along_axis(table[..., None], order[:, :, None, :], axis=1) for table in tables]


def p_value(observed: Floats, null: Floats) -> Floats:
    """Return how often chance gives as much or more, (R,), one-sided; observed is (R,), null (B, R)."""
    result: Floats = (1 + (~_smaller(null, observed)).sum(axis=0)) / (len(null) + 1)
    return np.where(np.isnan(observed), 1.0, result)


def _smaller(null: Floats, observed: Floats) -> Bools:
    return null < observed - TIE * np.abs(observed)  # False for nan


def _check(table: Floats, permutations: int) -> None:
    if permutations < 1:
        raise ConfigError(f"permutations: must be >= 1, got {permutations}")
    if table.ndim != 3 or 0 in table.shape[:2]:
        raise DataError(f"permutation: expected questions x conditions x statistics, got {table.shape}")


def null_of(table: Floats, statistic: Statistic, permutations: int, seed: int, sets: int = 1) -> Floats:
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
