"""Translators trained several times: one model per k or one model for all k, and the variance between training runs.

The study gives means and standard deviations over training runs, and differences between systems.  The interval of a
difference resamples questions and training runs together.  For a system that was trained once, it does not include the
variance between training runs.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from experiments.grid import CONTINUED, SEPARATE, AblationConfig
from experiments.results_book.item import Item, finished_grid
from experiments.results_book.ledger import Row
from experiments.results_book.tables import DEVIATION
from sqa import metrics as metric_names
from sqa.api.experiment import Result
from sqa.core import compare_levels, total
from sqa.pipeline import load
from sqa.report import plots

SHIPPED = "wait-k"  # the bundled model, from which the training of these models started
SHOWN = ("bleu", "ew", "oracle-ew", "accuracy")
COLUMNS = ("dataset", "translator", "k", "guesser")

Key = tuple[str, str, int | str, str]  # data set, family, k, guesser
Groups = Mapping[Key, Sequence[Result]]
Pair = tuple[tuple[str, ...], Sequence[Result], Sequence[Result], bool]  # cell, runs a and b, whether models are shared


def answers(config: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of `rows_of` for a grid's config; missing runs are computed."""
    return rows_of(finished_grid(config, runs), load(config, AblationConfig).resamples)


def rows_of(grid: Sequence[Result], resamples: int) -> Iterator[Row]:
    """Yield the mean of each metric over training runs, the standard deviation (n - 1) of several, and differences.

    The differences are largest minus smallest k, and separate models minus the multi-path or shipped model.  The
    shipped model counts as one training run.
    """
    groups: defaultdict[Key, list[Result]] = defaultdict(list)
    for row in grid:
        if row.cell.seed is not None or row.cell.family == SHIPPED:
            groups[row.cell.dataset, row.cell.family, row.cell.k, row.cell.contestant].append(row)
    metrics = metric_names.build(SHOWN)
    for (dataset, family, k, guesser), trainings in groups.items():
        for metric in (metric for metric in metrics if all(metric.name in row.stats for row in trainings)):
            values = [total(row.stats[metric.name], metric) for row in trainings]
            cell, n = (dataset, family, str(k), guesser), len(values)
            yield Row(cell, metric.name, fmean(values), n=n, unit=metric.unit)
            if n > 1:
                yield Row(cell, metric.name + DEVIATION, stdev(values), n=n, unit=metric.unit)
    for metric in metrics:
        tables = {key: rows for key, rows in groups.items() if all(metric.name in row.stats for row in rows)}
        for where, a, b, same in (*trends(tables), *models(tables)):
            first, second = (np.stack([row.stats[metric.name] for row in rows]) for rows in (a, b))
            i = compare_levels(first, second, metric, resamples, (same,))
            yield Row(where, metric.name, i.value, i.low, i.high, unit=metric.unit)


def trends(groups: Groups) -> Iterator[Pair]:
    """Yield the runs at the largest and smallest k of each translator with several training runs, matched by seed."""
    all_series: defaultdict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for key, trainings in groups.items():
        if len(trainings) > 1:
            all_series[key[0], key[1], key[3]].append(key)
    for (dataset, family, guesser), keys in all_series.items():
        smallest, largest = (pick(keys, key=lambda key: plots.order(key[2])) for pick in (min, max))
        below, above = ({row.cell.seed: row for row in groups[key]} for key in (smallest, largest))
        seeds = [seed for seed in above if seed in below]
        if smallest != largest and seeds:
            high, low = ([rows[seed] for seed in seeds] for rows in (above, below))
            yield (dataset, family, f"{largest[2]} minus {smallest[2]}", guesser), high, low, family != SEPARATE


def models(groups: Groups) -> Iterator[Pair]:
    """Yield the runs of separate models paired with the runs of multi-path or shipped models at the same k."""
    for other in (CONTINUED, SHIPPED):
        for (dataset, family, k, guesser), separate in groups.items():
            if family == SEPARATE and (others := groups.get((dataset, other, k, guesser))):
                yield (dataset, f"{SEPARATE} minus {other}", str(k), guesser), separate, others, False


ITEMS = (
    Item(
        "seeds",
        "the Spanish language model trained three times: variation between training runs",
        "studies.yaml:seeds",
        COLUMNS,
        answers,
        kept="three training runs of a language model",
    ),
)
