"""Figure 9: quality over k by the metrics that the paper adds to BLEU: YiSi-1, Prism and BLEURT.

    sqa reproduce fig9

A panel per metric, a line per translator of the ablation, with 95% bands over questions.  A metric whose program or
weights are not there is left out, and one line says what is missing; with none of them there is no figure.

Claim, after Figure 9 of Han, Carpuat and Boyd-Graber (2022), which shows what Figure 3b shows: quality rises with k, so
full input is better than the smallest k.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments.grid import AblationConfig, language_of, systems, usable, workshop
from experiments.lab import curves
from experiments.lab.ledger import Row as Number
from experiments.ladders import order
from experiments.made import Difference, LeftOut, Made, gap
from sqa.core.errors import ConfigError, NotComputable
from sqa.core.significance import Interval, bootstrap, compare
from sqa.files.store import Store
from sqa.report.figure_style import save, style
from sqa.run.config import QualityConfig, load, run_from_mapping, to_mapping

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sqa.run.parts import Parts


@dataclass(frozen=True, slots=True)
class Figure9Config:
    """What `sqa reproduce fig9` reads; configs/figure9.yaml explains each key."""

    name: str
    ablation: Path
    quality: tuple[QualityConfig, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.quality or len(self.labels) != len(self.quality):
            raise ConfigError(f"labels: one for each of the {len(self.quality)} entries of quality, at least one")


class Point(NamedTuple):
    """One translator at one k on one data set."""

    dataset: str
    family: str
    k: int | str
    metrics: dict[str, Any]  # by name, those that could be computed
    stats: dict[str, np.ndarray]  # metric -> (n, d)
    intervals: dict[str, Interval]
    refusals: dict[str, str]


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig9`: score what the store lacks; numbers, figures, differences; the last on stdout."""
    config = load(config_path, Figure9Config)
    base = replace(load(config_path.parent / config.ablation, AblationConfig), sweeps={})
    points = measure(config, base, Store(runs), workshop(runs).parts)
    labels = {entry.name: label for entry, label in zip(config.quality, config.labels, strict=True)}
    refusals = {name: point.refusals[name] for point in reversed(points) for name in labels if name in point.refusals}
    left_out = [LeftOut(labels[name], " ".join(why.split())) for name, why in refusals.items()]
    for out in left_out:
        print(f"{out.label}: not computed, {out.reason}", file=sys.stderr)
    there = [name for name in labels if any(name in point.intervals for point in points)]
    if not there:
        raise NotComputable("figure 9: " + "; ".join(f"{out.label}: {out.reason}" for out in left_out))
    made = Made(runs / config.name)
    families = list(dict.fromkeys(point.family for point in points))
    for dataset in dict.fromkeys(point.dataset for point in points):
        mine = [point for point in points if point.dataset == dataset]
        stem = f"figure9_{Path(dataset).name}"
        made.csv(f"{stem}.csv", table(mine, there))
        with style():
            made.add(save(drawn(mine, {name: labels[name] for name in there}, families), made.folder, stem))
    made.differences(differences_of(points, labels, base), left_out)
    made.end()


def measure(config: Figure9Config, base: AblationConfig, store: Store, parts: Parts) -> list[Point]:
    """Every translator of the ablation at every k, on every data set, held against the human translation."""
    from sqa.run.pipeline import run

    points = []
    for dataset in usable(base):
        for family, k, translator, _ in systems(base, language_of(dataset), []):
            if family == "reference":
                continue
            given = {"name": dataset} if base.limit is None else {"name": dataset, "limit": base.limit}
            wanted = run_from_mapping({
                "name": f"{config.name}-{Path(dataset).name}-{family.replace(' ', '-')}-{k}", "dataset": given,
                "translator": translator, "metrics": ["bleu"], "seed": base.seed,
                "quality": to_mapping(config.quality),
            })  # fmt: skip
            result = run(wanted, store, parts=parts, progress=False)
            names = {entry.name for entry in config.quality}
            metrics = {m.name: m for m in result.metrics if m.name in names and m.name in result.stats}
            stats = {name: result.stats[name] for name in metrics}
            intervals = {name: bootstrap(stats[name], metrics[name], base.resamples, base.seed) for name in metrics}
            refusals = {name: why for name, why in result.refusals.items() if name in names}
            points.append(Point(dataset, family, k, metrics, stats, intervals, refusals))
    return points


def ladder(points: Sequence[Point], dataset: str, family: str, metric: str) -> list[Point]:
    """A translator's points that have a metric, from the smallest k to full input."""
    mine = [p for p in points if (p.dataset, p.family) == (dataset, family) and metric in p.intervals]
    return sorted(mine, key=lambda point: order(point.k))


def differences_of(points: Sequence[Point], labels: dict[str, str], base: AblationConfig) -> Iterator[Difference]:
    """The claim, for every data set, translator with several k, and metric."""
    for dataset, family in dict.fromkeys((point.dataset, point.family) for point in points):
        for name, label in labels.items():
            line = ladder(points, dataset, family, name)
            if len(line) > 1 and line[-1].k == "full":
                small, full = line[0], line[-1]
                found = compare(full.stats[name], small.stats[name], full.metrics[name], base.resamples, base.seed)
                claim = f"{label} is better at k=full than at k={small.k}"
                yield gap(dataset, family, "-", claim, found, ".4f")


def table(points: Sequence[Point], metrics: Sequence[str]) -> list[list[str]]:
    """The drawn numbers: a line per translator, k and metric."""
    rows = [["dataset", "translator", "k", "metric", "questions", "value", "low", "high", "signature"]]
    for point in points:
        for name in metrics:
            if name in point.intervals:
                i = point.intervals[name]
                cells = [f"{x:.6f}" for x in (i.value, i.low, i.high)]
                where = [point.dataset, point.family, str(point.k), name, str(i.n)]
                rows.append([*where, *cells, point.metrics[name].signature()])
    return rows


def drawn(points: Sequence[Point], labels: dict[str, str], families: Sequence[str]) -> Figure:
    """One data set's figure: a panel for each metric; `families`: those of all data sets, in order of their looks."""
    dataset, panels = points[0].dataset, []
    for name, label in labels.items():
        lines = []
        for look, family in enumerate(families):
            line = ladder(points, dataset, family, name)
            if line:
                rows = {str(p.k): Number((), name, i.value, i.low, i.high, i.n)
                        for p in line for i in [p.intervals[name]]}  # fmt: skip
                lines.append(curves.Line(family, look, rows))
        panels.append(curves.Panel(label, lines))
    figure = curves.over_k([panels], "k (source words read first); no axis starts at 0", 2.6)
    n = next(i.n for p in points for i in p.intervals.values())
    figure.suptitle(f"{dataset}, {n} questions, 95% bands", fontsize=8)
    return figure
