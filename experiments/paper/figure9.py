"""Figure 9: translation quality over k by the metrics that the paper uses besides BLEU: YiSi-1, Prism and BLEURT.

    sqa reproduce fig9

There is one panel per metric and one line per translator of the ablation, with 95% bands over questions.  A metric
whose program or weights are missing is left out, and a message names the missing part.  If all metrics are missing,
the command fails.

Claim, after Figure 9 of Han, Carpuat and Boyd-Graber (2022), which agrees with its Figure 3b: quality rises with k,
so full input is better than the smallest k.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.grid import AblationConfig, experiment, part_of_name, usable
from experiments.outputs import LeftOut, Outputs, gap
from experiments.results_book.ledger import Row
from sqa.api.experiment import Result, Results
from sqa.core.differences import compare
from sqa.core.errors import NotComputable
from sqa.core.schema import checked
from sqa.pipeline import paired
from sqa.pipeline.config import QualityConfig, load, to_mapping
from sqa.report import plots
from sqa.results import Frame

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


def main(config_path: Path, runs: Path) -> None:
    """Write numbers, figures and differences of Figure 9; print the differences."""
    config = load(config_path, Figure9Config)
    base = load(config_path.parent / config.ablation, AblationConfig)
    results = measure(config, base, runs)
    labels = {entry.name: label for entry, label in zip(config.quality, config.labels, strict=True)}
    refusals = {name: why for result in reversed(results) for name, why in result.saved.refusals.items()}
    left_out = [LeftOut(label, " ".join(refusals[name].split())) for name, label in labels.items() if name in refusals]
    for out in left_out:
        print(f"{out.label}: not computed, {out.reason}", file=sys.stderr)
    wanted = [row for row in results.frame.rows if row.metric in labels]
    rows = Frame(COLUMNS, [replace(row, cell=tuple(row[name] for name in COLUMNS)) for row in wanted]).rows
    if not rows:
        raise NotComputable("figure 9: " + "; ".join(f"{out.label}: {out.reason}" for out in left_out))
    outputs = Outputs(runs / config.name)
    families = list(dict.fromkeys(row["translator"] for row in rows))
    for dataset in dict.fromkeys(result.dataset for result in results):
        stem, of_dataset = f"figure9_{Path(dataset).name}", [row for row in rows if row["dataset"] == dataset]
        outputs.rows(f"{stem}.csv", COLUMNS, of_dataset)
        outputs.picture(stem, drawn, of_dataset, labels, families)
    outputs.differences(differences_of(results, labels), left_out)
    outputs.end()


def measure(config: Figure9Config, base: AblationConfig, runs: Path) -> Results:
    """Return the runs of every translator of the ablation, at every k and on every data set, scored by `quality`."""
    texts = replace(
        experiment(base, usable(base), runs),
        guessers={"-": (None, None)},
        metrics=("bleu",),
        quality=to_mapping(config.quality),
        name_of=lambda cell: f"{config.name}-{Path(cell.dataset).name}-{part_of_name(cell.family)}-{cell.k}",
    )
    return texts.run(wanted=lambda cell: cell.family != "reference")


def differences_of(results: Sequence[Result], labels: Mapping[str, str]) -> Iterator[Row]:
    """Yield the claim's difference for every data set, metric and translator with several k including full input."""
    for dataset, family in dict.fromkeys((result.dataset, result.cell.family) for result in results):
        of_family = [result for result in results if (result.dataset, result.cell.family) == (dataset, family)]
        for name, label in labels.items():
            line = sorted((r for r in of_family if name in r.stats), key=lambda r: plots.order(r.cell.k))
            if len(line) > 1 and line[-1].k == "full":
                small, full = line[0], line[-1]
                [metric] = paired.metrics_of([name], full.saved)
                pair = full.stats[name], small.stats[name]
                difference = compare(*pair, metric, full.resamples, full.cell.config.seed)
                claim = f"{label} is better at k=full than at k={small.k}"
                yield gap(dataset, family, "-", claim, difference, ".4f")


def drawn(rows: Sequence[Row], labels: Mapping[str, str], families: Sequence[str]) -> plots.Figure:
    """Draw one data set's figure, with a panel for each metric.

    `families` lists the translators of all data sets in the order of the colours.
    """
    panels = []
    for name, label in labels.items():
        lines = plots.lines((row for row in rows if row.metric == name), "translator", "k", families)
        panels += [plots.Panel(label, lines)] if lines else []
    title = f"{rows[0]['dataset']}, {rows[0].n} questions, 95% bands"
    return plots.over_k([panels], "k (source words read first); no axis starts at 0", 2.6, title=title)
