"""Translators trained several times: means and deviations over trainings, and differences whichever one happens to get.

The interval of a difference resamples questions and trainings together; with a single training of a system it knows
nothing of its variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from experiments.grid import CONTINUED, SEPARATE
from experiments.lab.ledger import Row
from experiments.lab.tables import DEVIATION
from sqa import metrics as metric_names
from sqa.core.errors import DataError
from sqa.core.significance import Interval, Resampled
from sqa.core.types import Floats
from sqa.report.plots import order

if TYPE_CHECKING:
    from experiments.grid import Row as GridRow

SHIPPED = "wait-k"  # the bundled model, which they began with
SHOWN = ("bleu", "ew", "oracle-ew", "accuracy")
COLUMNS = ("dataset", "translator", "k", "guesser")
_QUESTIONS, _TRAININGS = 5, 6  # streams of random numbers that share a seed with those of sqa/core

Key = tuple[str, str, int | str, str]  # data set, family, k, guesser
Groups = Mapping[Key, Sequence["GridRow"]]


def rows_of(grid: Sequence[GridRow]) -> Iterator[Row]:
    """Means and deviations (n - 1) over trainings; largest k minus smallest; separate models minus the others.

    The shipped model counts as one training.
    """
    groups: dict[Key, list[GridRow]] = {}
    for row in grid:
        if row.cell.seed is not None or row.cell.family == SHIPPED:
            groups.setdefault((row.cell.dataset, row.cell.family, row.cell.k, row.cell.guesser), []).append(row)
    metrics = metric_names.build(SHOWN)
    for (dataset, family, k, guesser), trainings in groups.items():
        for name, unit in ((m.name, m.unit) for m in metrics if all(m.name in row.intervals for row in trainings)):
            values, cell = [row.intervals[name].value for row in trainings], (dataset, family, str(k), guesser)
            yield Row(cell, name, fmean(values), n=len(values), unit=unit)
            if len(values) > 1:
                yield Row(cell, name + DEVIATION, stdev(values), n=len(values), unit=unit)
    for metric in metrics:
        tables = {key: rows for key, rows in groups.items() if all(metric.name in row.stats for row in rows)}
        for where, a, b, same in (*trends(tables), *models(tables)):
            first, second = ([row.stats[metric.name] for row in rows] for rows in (a, b))
            i = compare_trainings(first, second, metric, a[0].intervals[metric.name].resamples, same=same)
            yield Row(where, metric.name, i.value, i.low, i.high, unit=metric.unit)


Pair = tuple[tuple[str, ...], Sequence["GridRow"], Sequence["GridRow"], bool]  # cell, trainings a and b, the same ones


def trends(groups: Groups) -> Iterator[Pair]:
    """Largest k minus smallest k of a translator with several trainings, by the same seeds."""
    ladders: dict[tuple[str, str, str], list[Key]] = {}
    for key, trainings in groups.items():
        if len(trainings) > 1:
            ladders.setdefault((key[0], key[1], key[3]), []).append(key)
    for (dataset, family, guesser), keys in ladders.items():
        smallest, largest = (pick(keys, key=lambda key: order(key[2])) for pick in (min, max))
        below, above = ({row.cell.seed: row for row in groups[key]} for key in (smallest, largest))
        seeds = [seed for seed in above if seed in below]
        if smallest != largest and seeds:
            high, low = ([rows[seed] for seed in seeds] for rows in (above, below))
            yield (dataset, family, f"{largest[2]} minus {smallest[2]}", guesser), high, low, family != SEPARATE


def models(groups: Groups) -> Iterator[Pair]:
    """The models trained for one k minus those trained for all, and minus the shipped one, at the same k."""
    for other in (CONTINUED, SHIPPED):
        for (dataset, family, k, guesser), separate in groups.items():
            if family == SEPARATE and (others := groups.get((dataset, other, k, guesser))):
                yield (dataset, f"{SEPARATE} minus {other}", str(k), guesser), separate, others, False


def compare_trainings(
    a: Sequence[Floats],
    b: Sequence[Floats],
    metric: Resampled,
    resamples: int = 1000,
    seed: int = 0,
    same: bool = False,
) -> Interval:
    """Mean score over the trainings of one system minus that of another.

    `a` and `b`: the statistics (n, d) of each training; row i of all of them is the same question.  same: table i of
    both comes from the same training (one model at two k), so both are drawn together.
    """
    tables = [np.asarray(table, dtype=np.float64) for table in (*a, *b)]
    if not a or not b or len({table.shape for table in tables}) != 1:
        shapes = ", ".join(str(table.shape) for table in tables)
        raise DataError(f"{metric.name}: expected trainings of two systems on the same questions, got {shapes}")
    if same and len(a) != len(b):
        raise DataError(f"{metric.name}: expected the same trainings on both sides, got {len(a)} and {len(b)}")
    n = len(tables[0])
    value = gap_of(metric.score_many(np.stack([table.sum(axis=0) for table in tables]))[None], len(a))[0]
    weights = np.random.default_rng([seed, _QUESTIONS]).multinomial(n, np.full(n, 1 / n), size=resamples)
    scores = np.stack([metric.score_many(weights.astype(float) @ table) for table in tables], axis=1)  # (resamples, t)
    rng = np.random.default_rng([seed, _TRAININGS])
    drawn = [first + rng.integers(0, count, (resamples, count)) for first, count in ((0, len(a)), (len(a), len(b)))]
    if same:
        drawn[1] = drawn[0] + len(a)
    low, high = np.nanpercentile(gap_of(np.take_along_axis(scores, np.hstack(drawn), axis=1), len(a)), [2.5, 97.5])
    return Interval(float(value), float(low), float(high), n, resamples=resamples)


def gap_of(scores: Floats, size: int) -> Floats:
    """(B, trainings) -> (B,): mean of the first `size` minus mean of the others."""
    return np.asarray(scores[:, :size].mean(axis=1) - scores[:, size:].mean(axis=1))
