"""Figure 9: quality over k by the metrics that the paper adds to BLEU: YiSi-1, Prism and BLEURT.

    sqa reproduce fig9

There is one panel per metric and one line per translator of the ablation, with 95% bands over questions.  A metric
whose program or weights are missing is left out, and a message names the missing part.  If all are missing, there
is no figure.

Claim, after Figure 9 of Han, Carpuat and Boyd-Graber (2022), which agrees with its Figure 3b: quality rises with k,
so full input is better than the smallest k.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from experiments.grid import AblationConfig, language_of, part_of_name, systems, usable, workshop
from experiments.lab.ledger import Row
from experiments.measured import intervals, scored
from experiments.outputs import LeftOut, Outputs, gap
from sqa.core.differences import compare
from sqa.core.errors import NotComputable
from sqa.core.schema import checked
from sqa.files.store import Store
from sqa.pipeline.config import QualityConfig, load, of_parts, to_mapping
from sqa.pipeline.engine import RunResult, run
from sqa.pipeline.parts import Parts
from sqa.pipeline.spread import make_ahead
from sqa.report import plots

COLUMNS = ("dataset", "translator", "k")


@dataclass(frozen=True, slots=True)
@checked
class Figure9Config:
    """Keys of `sqa reproduce fig9`; configs/figure9.yaml explains them."""

    name: str
    ablation: Path
    quality: tuple[QualityConfig, ...]
    labels: tuple[str, ...]

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        right = self.quality and len(self.labels) == len(self.quality)
        return [] if right else [f"labels: one for each of the {len(self.quality)} entries of quality, at least one"]


class Point(NamedTuple):
    """One translator at one k on one data set."""

    dataset: str
    family: str
    k: int | str
    result: RunResult


def main(config_path: Path, runs: Path) -> None:
    """Write numbers, figures and differences of Figure 9; print the differences."""
    config = load(config_path, Figure9Config)
    base = replace(load(config_path.parent / config.ablation, AblationConfig), sweeps={})
    points = list(measure(config, base, Store(runs), workshop(runs).parts))
    labels = {entry.name: label for entry, label in zip(config.quality, config.labels, strict=True)}
    refusals = {name: why for point in reversed(points) for name, why in point.result.refusals.items()}
    left_out = [LeftOut(label, " ".join(refusals[name].split())) for name, label in labels.items() if name in refusals]
    for out in left_out:
        print(f"{out.label}: not computed, {out.reason}", file=sys.stderr)
    rows = [row for point in points for row in rows_of(point, labels, base)]
    if not rows:
        raise NotComputable("figure 9: " + "; ".join(f"{out.label}: {out.reason}" for out in left_out))
    outputs = Outputs(runs / config.name)
    families = list(dict.fromkeys(row.cell[1] for row in rows))
    for dataset in dict.fromkeys(point.dataset for point in points):
        stem, of_dataset = f"figure9_{Path(dataset).name}", [row for row in rows if row.cell[0] == dataset]
        outputs.rows(f"{stem}.csv", COLUMNS, of_dataset)
        outputs.picture(stem, drawn, of_dataset, labels, families)
    outputs.differences(differences_of(points, labels, base), left_out)
    outputs.end()


def measure(config: Figure9Config, base: AblationConfig, store: Store, parts: Parts) -> Iterator[Point]:
    """Yield every translator of the ablation at every k on every data set, scored against the human translation."""
    for dataset in usable(base):
        for family, k, translator, _ in systems(base, language_of(dataset), []):
            if family != "reference":
                wanted = of_parts(
                    name=f"{config.name}-{Path(dataset).name}-{part_of_name(family)}-{k}",
                    dataset={"name": dataset, "limit": base.limit},
                    translator=translator,
                    seed=base.seed,
                    quality=to_mapping(config.quality),
                )
                yield Point(dataset, family, k, run(wanted, store, parts=parts, progress=False, ahead=make_ahead))


def rows_of(point: Point, labels: Mapping[str, str], base: AblationConfig) -> list[Row]:
    """Return the rows of the metrics that could be computed."""
    given = [(metric, stats) for metric, stats in scored(point.result) if metric.name in labels]
    return intervals((point.dataset, point.family, str(point.k)), given, base.resamples, base.seed)


def differences_of(points: Sequence[Point], labels: Mapping[str, str], base: AblationConfig) -> Iterator[Row]:
    """Yield the claim for every data set, translator with several k, and metric."""
    for dataset, family in dict.fromkeys((point.dataset, point.family) for point in points):
        of_family = [point for point in points if (point.dataset, point.family) == (dataset, family)]
        for name, label in labels.items():
            line = sorted((p for p in of_family if name in p.result.stats), key=lambda p: plots.order(p.k))
            if len(line) > 1 and line[-1].k == "full":
                small, full = line[0].result, line[-1].result
                [metric] = [metric for metric in full.metrics if metric.name == name]
                difference = compare(full.stats[name], small.stats[name], metric, base.resamples, base.seed)
                claim = f"{label} is better at k=full than at k={line[0].k}"
                yield gap(dataset, family, "-", claim, difference, ".4f")


def drawn(rows: Sequence[Row], labels: Mapping[str, str], families: Sequence[str]) -> plots.Figure:
    """Draw one data set's figure: a panel for each metric.  families: translators of all data sets, in colour order."""
    panels = []
    for name, label in labels.items():
        lines = plots.lines((row for row in rows if row.metric == name), 1, 2, families)
        panels += [plots.Panel(label, lines)] if lines else []
    title = f"{rows[0].cell[0]}, {rows[0].n} questions, 95% bands"
    return plots.over_k([panels], "k (source words read first); no axis starts at 0", 2.6, title=title)
