"""A translator at every k on the same questions: differences between two k.

Every claim states that the best of several k is above one other k.  Intervals are percentiles over questions, drawn
within each data set; they do not account for the choice of the best k.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from experiments.results_book.ledger import Row, row_of
from sqa import metrics as metric_names
from sqa.api.experiment import Result
from sqa.core import FULL, BuiltMetric, Floats, K, compare_pooled, order
from sqa.pipeline.paired import metrics_of

POOLED = "both"  # name of a series over several data sets
RESAMPLES = 2000
RISE, FALL, GROWS = "rise", "fall", "grows"
CLAIMS: Mapping[str, tuple[str, str]] = {  # name -> metric, compared values of k
    "rise": ("ew", RISE),  # the best k above the smallest
    "fall": ("ew", FALL),  # the best k above full input
    "oracle rise": ("oracle-ew", RISE),
    "oracle fall": ("oracle-ew", FALL),
    "BLEU grows": ("bleu", GROWS),  # full input above the smallest k
    "accuracy grows": ("accuracy", GROWS),
}
LATER = "later peak"  # EW at its best k minus EW at oracle EW's best k
COLUMNS = ("dataset", "translator", "contestant", "claim", "between")


class OverK(NamedTuple):
    """One translator at every k, answered by one contestant, on one data set or on several with equal weight."""

    dataset: str
    translator: str
    contestant: str
    ks: tuple[K, ...]  # full input last
    parts: tuple[Mapping[str, Floats], ...]  # for each data set: metric -> statistics (n, K, d)
    trainings: str = "1"  # number of trainings, or the smallest and the largest number: "2 to 3"
    quality: Mapping[str, BuiltMetric] = MappingProxyType({})  # metrics of the config's `quality`, by name

    @property
    def metrics(self) -> set[str]:
        """Metrics that every part has."""
        return set.intersection(*(set(part) for part in self.parts))

    def metric(self, name: str) -> BuiltMetric:
        """Return a metric by name."""
        return self.quality.get(name) or metric_names.build([name])[0]

    def table(self, metric: str) -> Floats:
        """Return the statistics of all parts, of shape (n, K, d), weighted so that all parts count equally."""
        return np.concatenate([part[metric] / len(part[metric]) for part in self.parts])

    def scores(self, metric: str) -> Floats:
        """Return the metric at every k, as an array of shape (K,)."""
        return np.array(self.metric(metric).score_many(self.table(metric).sum(axis=0)))

    def compared(self, kind: str) -> tuple[list[int], int] | None:
        """Return the indices of the k whose best is compared, and the index of the k to compare it with.

        Returns None if there are too few k.
        """
        full = len(self.ks) - 1 if self.ks[-1] == FULL else None
        finite = len(self.ks) if full is None else full
        if kind == RISE:
            return (list(range(1, finite)), 0) if finite > 2 else None
        if full is None or finite < 2:
            return None
        return (list(range(finite)), full) if kind == FALL else ([full], 0)

    def best(self, metric: str, indices: Sequence[int]) -> int:
        """Return the index of the best k among `indices`."""
        return indices[int(np.argmax(self.scores(metric)[list(indices)]))]


def all_series(grid: Iterable[Result]) -> list[OverK]:
    """Return a series for each data set, contestant and translator with several k, then the pooled all_series.

    Data sets are pooled if they have the same k.  A question's statistics are means over the translator's trainings.
    """
    rows: dict[tuple[str, str, str], dict[K, list[Mapping[str, Floats]]]] = {}
    quality: dict[str, BuiltMetric] = {}
    for row in (row for row in grid if row.cell.family != "reference"):
        cell, stats = row.cell, row.stats
        by_k = rows.setdefault((cell.dataset, cell.family, cell.contestant), {})
        by_k.setdefault(cell.k, []).append(stats)
        names = [entry.name for entry in cell.config.quality if entry.name in stats and entry.name not in quality]
        quality |= {metric.name: metric for metric in metrics_of(names, row.saved)}
    by_system: dict[tuple[str, str], list[OverK]] = {}
    for (dataset, family, contestant), by_k in rows.items():
        ks = tuple(sorted(by_k, key=order))
        if len(ks) > 1:
            runs = [stats for members in by_k.values() for stats in members]
            names = [name for name in runs[0] if all(name in stats for stats in runs)]
            means = {name: [np.mean([stats[name] for stats in by_k[k]], axis=0) for k in ks] for name in names}
            part = {name: np.stack(tables, axis=1) for name, tables in means.items()}
            counts = sorted({len(members) for members in by_k.values()})
            trainings = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
            series = OverK(dataset, family, contestant, ks, (part,), trainings, quality)
            by_system.setdefault((family, contestant), []).append(series)
    single = [series for members in by_system.values() for series in members]
    pools = [
        members[0]._replace(dataset=POOLED, parts=tuple(series.parts[0] for series in members))
        for members in by_system.values()
        if len(members) > 1 and len({(series.ks, series.trainings) for series in members}) == 1
    ]
    return [*single, *pools]


def differences(series: OverK) -> Iterator[Row]:
    """Yield a row for each claim that can be tested with the series' k and metrics."""
    of_quality = {f"{name} grows": (name, GROWS) for name in series.quality}
    for claim, (metric, kind) in {**CLAIMS, **of_quality}.items():
        compared = series.compared(kind)
        if compared is not None and metric in series.metrics:
            indices, end = compared
            yield difference(series, claim, metric, series.best(metric, indices), end)
    if {"ew", "oracle-ew"} <= series.metrics:
        finite = [index for index, k in enumerate(series.ks) if k != FULL]
        peaks = series.best("ew", finite), series.best("oracle-ew", finite)
        if peaks[0] != peaks[1]:
            yield difference(series, LATER, "ew", *peaks)


def difference(series: OverK, claim: str, metric: str, a: int, b: int) -> Row:
    """Return the metric at k index `a` minus the metric at k index `b`, with its percentile interval."""
    built = series.metric(metric)
    gap = compare_pooled([(part[metric][:, a], part[metric][:, b]) for part in series.parts], built, RESAMPLES)
    cell = (series.dataset, series.translator, series.contestant, claim, f"k = {series.ks[a]} minus k = {series.ks[b]}")
    return row_of(cell, metric, gap, built.unit, built.signature())
