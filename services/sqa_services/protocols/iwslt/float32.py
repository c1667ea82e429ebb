"""AL, AP and DAL of one sentence in float32, operation by operation as the servers of 2020 computed them with torch.

`sqa.metrics.latency` has the same formulas in float64, for any number of sentences at once.  The servers' JSON shows
every digit of a float32, so a transcript replays byte for byte only if the operations come in their order; the order
of a sum is that of torch on processors with eight float32 lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sqa.metrics.latency import Convention

LANES = 8  # float32 numbers that torch adds at once
ROWS = 4  # sums it keeps side by side
LEVELS = 4  # of its cascade


class Latency(NamedTuple):
    """Of one sentence, in source units (AP: a share); nan without words."""

    al: float
    ap: float
    dal: float


def sentence_latency(
    delays: Sequence[float], source_length: float, convention: Convention, reference_length: int | None = None
) -> Latency:
    """AL, AP and DAL.  `source_length` > 0 is as the convention counts it: with the end of a text, or without.

    `reference_length` is |y| of AL where the convention's `al_reference` is "capped"; the number of delays otherwise.
    """
    if not delays or not source_length > 0:
        return Latency(math.nan, math.nan, math.nan)
    read = [d + convention.late if d < source_length else d for d in delays]
    if convention.clip:
        read = [min(int(d), source_length) for d in read]
    steps = np.array(read, dtype=np.float32)  # (T,)
    source, number = np.float32(source_length), np.float32(len(read))
    index = np.arange(len(read), dtype=np.float32)  # (T,)
    per_word = index / (number / source)  # (T,) (i-1)/gamma
    ideal = per_word
    if convention.al_reference == "capped":
        target = len(read) if reference_length is None else reference_length
        ideal = np.minimum(index, np.float32(target - 1)) * source / np.float32(target)
    counted = np.concatenate(([True], steps[:-1] < source))  # (T,) up to the first word that saw the whole source
    lag = np.where(counted, steps - ideal, np.float32(0))
    behind = _pushed(steps, np.float32(1) / (number / source)) - per_word
    return Latency(
        al=float(total(lag) / np.float32(counted.sum())),
        ap=float(total(steps) / (source * number)),
        dal=float(total(behind) / number),
    )


def _pushed(steps: np.ndarray, spacing: np.float32) -> np.ndarray:
    """d'_i = max(d_i, d'_{i-1} + 1/gamma), (T,) -> (T,)."""
    out = steps.copy()
    for i in range(1, len(out)):
        out[i] = max(out[i - 1] + spacing, out[i])
    return out


def total(values: np.ndarray) -> np.float32:
    """The sum of float32 values (T,), added in torch's order."""
    if len(values) < LANES:
        return _lane_sums(values[:, None])[0]
    whole = len(values) // LANES
    result = np.float32(0)
    for value in values[whole * LANES :]:
        result += value
    for value in _lane_sums(values[: whole * LANES].reshape(whole, LANES)):
        result += value
    return result


def _lane_sums(rows: np.ndarray) -> np.ndarray:
    """Column sums (n, w) -> (w,): every fourth row to the same of four sums, what is left over to the first."""
    count, width = rows.shape
    fours = count // ROWS
    sums = _cascade(rows[: fours * ROWS].reshape(fours, ROWS * width)).reshape(ROWS, width)
    sums[0] = _in_order([sums[0], *rows[fours * ROWS :]])
    return _in_order(sums)


def _cascade(rows: np.ndarray) -> np.ndarray:
    """Column sums (n, w) -> (w,): sums of 16 rows or more are added up on a second level, and so on."""
    size = 1 << max(4, (len(rows) - 1).bit_length() // LEVELS if len(rows) > 1 else 0)
    sums = []  # of what is left over on each level, the last first
    for _ in range(LEVELS - 1):
        whole = len(rows) // size * size
        sums.append(_in_order(rows[whole:], rows.shape[1]))
        rows = _in_order(rows[:whole].reshape(-1, size, rows.shape[1]).swapaxes(0, 1))
    return _in_order([*sums, _in_order(rows, rows.shape[1])])


def _in_order(rows: Sequence[np.ndarray] | np.ndarray, width: int = 0) -> np.ndarray:
    """The sum of rows, one after the other; of none: zeros, (width,)."""
    return np.cumsum(rows, axis=0, dtype=np.float32)[-1] if len(rows) else np.zeros(width, dtype=np.float32)
