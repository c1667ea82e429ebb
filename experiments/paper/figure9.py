"""Figure 9: quality over k by the metrics that the paper adds to BLEU: YiSi-1, Prism and BLEURT.

    sqa reproduce fig9

A panel per metric, a line per translator of the ablation, with 95% bands over questions.  A metric whose program or
weights are not there is left out, and one line says what is missing; with none of them there is no figure.

Claim, after Figure 9 of Han, Carpuat and Boyd-Graber (2022), which shows what Figure 3b shows: quality rises with k, so
full input is better than the smallest k.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments.contestants import LeftOut, write_csv, write_verdicts
from experiments.grid import AblationConfig, language_of, systems, usable, workshop
from experiments.verdicts import Verdict, corrected, of_difference
from sqa.core.errors import ConfigError, NotComputable
from sqa.core.significance import Interval, bootstrap, compare
from sqa.files.store import Store
from sqa.report.figure_style import COLOURS, COLUMN, save, style
from sqa.run.config import QualityConfig, load, run_from_mapping, to_mapping

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sqa.run.parts import Parts

BESIDE = 0.15  # of the distance of two k
_MARKERS = ("o", "s", "^", "D", "v")


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
    """`sqa reproduce fig9`: score what the store lacks; numbers, figures, verdicts; the verdicts on stdout."""
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
    folder, paths = runs / config.name, []
    for dataset in dict.fromkeys(point.dataset for point in points):
        mine = [point for point in points if point.dataset == dataset]
        stem = f"figure9_{Path(dataset).name}"
        paths += [write_csv(table(mine, there), folder / f"{stem}.csv")]
        paths += draw(mine, {name: labels[name] for name in there}, folder, stem, [point.family for point in points])
    judged = corrected(list(verdicts_of(points, labels, base)))
    paths.append(write_verdicts(judged, left_out, folder / "verdicts.tsv"))
    print(paths[-1].read_text(encoding="utf-8"), end="")
    for path in paths:
        print(path)


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


def ladder(points: Sequence[Point], family: str, metric: str) -> list[Point]:
    """A translator's points that have a metric, from the smallest k to full input."""
    mine = [point for point in points if point.family == family and metric in point.intervals]
    return sorted(mine, key=lambda point: float("inf") if point.k == "full" else int(point.k))


def verdicts_of(points: Sequence[Point], labels: dict[str, str], base: AblationConfig) -> list[Verdict]:
    """The claim, for every data set, translator with several k, and metric."""
    found = []
    for dataset, family in dict.fromkeys((point.dataset, point.family) for point in points):
        for name, label in labels.items():
            line = ladder([point for point in points if point.dataset == dataset], family, name)
            if len(line) < 2 or line[-1].k != "full":
                continue
            small, full = line[0], line[-1]
            gap = compare(full.stats[name], small.stats[name], full.metrics[name], base.resamples, base.seed)
            numbers = f"{gap.a:.4f} and {gap.b:.4f}, {gap.diff:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]"
            claim = f"{label} is better at k=full than at k={small.k}"
            found.append(of_difference(dataset, family, "-", claim, numbers, gap))
    return found


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


def draw(
    points: Sequence[Point], labels: dict[str, str], folder: Path, stem: str, families: Sequence[str] = ()
) -> list[Path]:
    """One data set's figure, one column wide, a panel per metric; returns the PDF and the PNG.

    `families` are those of all data sets, in order: a translator has one look in every figure.
    """
    from matplotlib import pyplot

    order = list(dict.fromkeys([*families, *(point.family for point in points)]))
    ks = sorted({p.k for p in points}, key=lambda k: float("inf") if k == "full" else int(k))
    with style():
        size = (COLUMN, 0.9 + 1.7 * len(labels))
        figure, panels = pyplot.subplots(len(labels), 1, figsize=size, layout="constrained", sharex=True, squeeze=False)
        for axes, (name, label) in zip(panels[:, 0], labels.items(), strict=True):
            _panel(axes, points, name, ks, order)
            axes.set_ylabel(label)
        n = next(i.n for p in points for i in p.intervals.values())
        panels[0, 0].set_title(f"{points[0].dataset}, {n} questions, 95% bands", loc="left")
        panels[-1, 0].set_xticks(range(len(ks)), [*map(str, ks)])
        panels[-1, 0].set_xlabel("k (source words read first)\nthe axis of the metric does not start at 0")
        drawn = [dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)) for axes in panels[:, 0]]
        looks = {family: look for panel in reversed(drawn) for family, look in panel.items()}
        families = [family for family in dict.fromkeys(point.family for point in points) if family in looks]
        figure.legend([looks[family] for family in families], families, loc="outside lower center", ncols=2)
        return save(figure, folder, stem)


def _panel(axes: Axes, points: Sequence[Point], metric: str, ks: Sequence[int | str], families: Sequence[str]) -> None:
    """A line with its band for each translator; one that has a single k is a dot with its interval, beside the others'
    so that none hides another.
    """
    for i, family in enumerate(families):
        line = ladder(points, family, metric)
        if not line:
            continue
        found = [point.intervals[metric] for point in line]
        x = [ks.index(point.k) for point in line]
        look = {"color": COLOURS[i % len(COLOURS)], "marker": _MARKERS[i % len(_MARKERS)], "label": family}
        if len(line) == 1:
            ends = [[found[0].value - found[0].low], [found[0].high - found[0].value]]
            axes.errorbar(
                [x[0] + BESIDE], [found[0].value], yerr=ends, linestyle="", elinewidth=0.8, capsize=1.5, **look
            )
            continue
        axes.fill_between(x, [f.low for f in found], [f.high for f in found], color=look["color"], alpha=0.12, lw=0)
        axes.plot(x, [f.value for f in found], **look)
