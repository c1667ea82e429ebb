"""Scores of every system, and the rank correlation (Kendall's tau) of quality and lag metrics with expected wins.

    sqa reproduce correlation

The abstract of Han, Carpuat and Boyd-Graber (2022) says that usual evaluations of simultaneous translation miss
properties that matter for answering questions.  A tau below 1 by itself is no evidence of this, because chance also
reorders equally good systems.  The systems are the translators of the ablation at every k.  The human translation is
in the table but not ranked, because it is the reference of the quality metrics.  sqa/report/correlation.py defines
tau and its interval.

The CSV files contain every metric of the runs.  Metrics that cannot be compared are named on stderr, with the
reasons.  The paper has no such table.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.outputs import Outputs
from experiments.results_book import grid_rows
from experiments.results_book.ledger import Row
from sqa.api.experiment import COLUMNS, Results
from sqa.core.errors import ConfigError, NotComputable
from sqa.metrics.measure import SIGN
from sqa.pipeline import paired
from sqa.pipeline.config import load
from sqa.pipeline.folder import RunFolder
from sqa.report import plots
from sqa.report.correlation import HEADER, Correlation, correlate_runs
from sqa.results import Table, show

SHORT = ("ew", "oracle-ew", "accuracy")  # metrics in the figure, one colour each


@dataclass(frozen=True, slots=True)
class CorrelationConfig:
    """Keys of `sqa reproduce correlation`; configs/correlation.yaml explains them."""

    name: str
    ablation: Path
    resamples: int = 10_000


Taus = dict[tuple[str, str], list[Correlation]]  # maps (data set, guesser) to correlations over systems


def main(config_path: Path, runs: Path) -> None:
    """Compute missing runs, write the numbers and figures, and print the taus that the figures show."""
    config = load(config_path, CorrelationConfig)
    finished, taus, metrics = ranked(config_path, runs)
    outputs, head = Outputs(runs / config.name), ["dataset", "guesser", *HEADER]
    outputs.rows("correlation.csv", COLUMNS, finished.frame.rows)
    lines = [[*group, *tau.cells()] for group, correlations in taus.items() for tau in correlations]
    outputs.csv("correlation_tau.csv", [head, *lines])
    plain = [name for name in metrics if SIGN not in name]
    names = [name for kind in ("quality", "lag") for name in plain if metrics[name].kind == kind]
    for dataset in dict.fromkeys(dataset for (dataset, _), correlations in taus.items() if correlations):
        by_guesser = {guesser: correlations for (other, guesser), correlations in taus.items() if other == dataset}
        outputs.picture(f"correlation_{Path(dataset).name}", drawn, by_guesser, dataset, names, metrics)
    show(Table(head, [line for line in lines if line[2] in SHORT and line[3] in names]))
    outputs.end()


def ranked(config_path: Path, runs: Path) -> tuple[Results, Taus, dict[str, Any]]:
    """Return all finished cells, the correlations of each data set and guesser, and the compared metrics.

    A data set and guesser with too few systems have an empty list of correlations.  Missing runs are computed.
    """
    config = load(config_path, CorrelationConfig)
    finished = grid_rows.finished(config_path.parent / config.ablation, runs, lambda cell: cell.k != "diagonal")
    folders_of: dict[tuple[str, str], list[RunFolder]] = {}
    for row in (row for row in finished if row.cell.family != "reference"):
        folders_of.setdefault((row.dataset, row.guesser), []).append(row.saved)
    taus: Taus = {}
    metrics: dict[str, Any] = {}
    for group, systems in folders_of.items():
        try:
            taus[group], notes = correlate_runs(systems, n_resamples=config.resamples)
        except (ConfigError, NotComputable) as error:
            taus[group], notes = [], [f"not computed, {error}"]
        for note in notes:
            print(f"{', '.join(group)}: {note}", file=sys.stderr)
        names = dict.fromkeys(name for tau in taus[group] for name in (tau.a, tau.b))
        metrics |= {metric.name: metric for metric in paired.metrics_of(list(names), systems[0])}
    return finished, taus, metrics


def drawn(
    taus: Mapping[str, Sequence[Correlation]], dataset: str, names: Sequence[str], metrics: Mapping[str, Any]
) -> plots.Figure:
    """Draw Kendall's tau between the metrics in SHORT and each quality or lag metric, on one data set.

    There is a panel for each guesser, and each metric in SHORT has its own colour.
    """
    panels: dict[str, list[plots.Dot]] = {guesser: [] for guesser in taus}
    for guesser, correlations in taus.items():
        for tau in correlations:
            if tau.a in SHORT and tau.b in names and tau.tau is not None and tau.low is not None:
                number = SHORT.index(tau.a)
                row = Row((tau.b,), tau.a, tau.tau, tau.low, tau.high)
                y = names.index(tau.b) + 0.22 * (number - 1)
                panels[guesser].append(plots.Dot(y, row, number, metrics[tau.a].label))
    labels = [metrics[name].label + " ↓" * (not metrics[name].higher_is_better) for name in names]
    figure = plots.forest(
        panels, labels, plots.COLUMN, "Kendall's tau; 1: both rank the systems equally; ↓: less is better"
    )
    [first, *_] = next(iter(taus.values()))
    figure.suptitle(f"{dataset}, {first.systems} systems, {first.n} questions, 95% intervals", fontsize=8)
    return figure
