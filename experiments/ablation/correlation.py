"""Quality, lag and answers of every system; and does a quality metric rank the systems as expected wins do?

    sqa reproduce correlation

After the abstract of Han, Carpuat and Boyd-Graber (2022), that usual evaluations of simultaneous translation miss what
answering needs.  That tau is below 1 shows nothing, since chance alone orders equal systems anew.
The systems are the translators of the ablation at every k; the human translation is in the table, but not ranked, since
it is what quality is measured against.  Tau and its interval: sqa/report/correlation.py.

Every metric that the runs have is in the numbers; which cannot be compared, and why, is said on stderr.  The paper has
no such table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.grid import Row as GridRow
from experiments.lab import grid_rows
from experiments.lab.forest import Dot, forest, look
from experiments.lab.ledger import Row
from experiments.made import Made
from sqa.core.errors import ConfigError, NotComputable
from sqa.report.correlation import HEADER, Correlation, correlate_runs
from sqa.report.figure_style import COLUMN
from sqa.run import folder as folders
from sqa.run import paired
from sqa.run.config import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHORT = ("ew", "oracle-ew", "accuracy")  # drawn, with a colour each


@dataclass(frozen=True, slots=True)
class CorrelationConfig:
    """What `sqa reproduce correlation` reads; configs/correlation.yaml explains each key."""

    name: str
    ablation: Path
    resamples: int = 10_000


class Group(NamedTuple):
    """The systems that answer the same questions through the same guesser."""

    dataset: str
    guesser: str
    metrics: dict[str, Any]  # by name
    taus: list[Correlation]

    @property
    def drawn(self) -> list[str]:
        """The metrics of quality, then those of lag."""
        kinds = [(kind, name) for kind in ("quality", "lag") for name in self.metrics if "@" not in name]
        return [name for kind, name in kinds if self.metrics[name].kind == kind]


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce correlation`: run what the store lacks; numbers and figures; the taus drawn on stdout."""
    config = load(config_path, CorrelationConfig)
    finished, groups = ranked(config_path, runs)
    made, head = Made(runs / config.name), ["dataset", "guesser", *HEADER]
    made.rows("correlation.csv", grid_rows.COLUMNS, grid_rows.rows_of(finished))
    lines = [[group.dataset, group.guesser, *tau.cells()] for group in groups for tau in group.taus]
    made.csv("correlation_tau.csv", [head, *lines])
    for dataset in dict.fromkeys(group.dataset for group in groups if group.taus):
        mine = [group for group in groups if group.dataset == dataset]
        made.picture(f"correlation_{Path(dataset).name}", drawn, mine, dataset)
    shown = {
        (group.dataset, group.guesser, tau.a, tau.b)
        for group in groups
        for tau in group.taus
        if tau.a in SHORT and tau.b in group.drawn
    }
    print(folders.tsv(head, [line for line in lines if tuple(line[:4]) in shown]), end="")
    made.end()


def ranked(config_path: Path, runs: Path) -> tuple[list[GridRow], list[Group]]:
    """All finished cells, and the correlations of each data set and guesser; what the store lacks is run."""
    config = load(config_path, CorrelationConfig)
    finished = grid_rows.finished(config_path.parent / config.ablation, runs, lambda cell: cell.k != "diagonal")
    found: dict[tuple[str, str], list[folders.RunFolder]] = {}
    for cell in (row.cell for row in finished if row.cell.family != "reference"):
        found.setdefault((cell.dataset, cell.guesser), []).append(folders.read(runs / cell.run.name))
    return finished, [group_of(*key, mine, config.resamples) for key, mine in found.items()]


def group_of(dataset: str, guesser: str, ranked: list[folders.RunFolder], resamples: int) -> Group:
    """The correlations over some systems, none where there are too few of them."""
    taus: list[Correlation] = []
    try:
        taus, notes = correlate_runs(ranked, n_resamples=resamples)
    except (ConfigError, NotComputable) as error:
        notes = [f"not computed, {error}"]
    for note in notes:
        print(f"{dataset}, {guesser}: {note}", file=sys.stderr)
    names = list(dict.fromkeys(name for tau in taus for name in (tau.a, tau.b)))
    return Group(dataset, guesser, {metric.name: metric for metric in paired.metrics_of(names, ranked[0])}, taus)


def drawn(groups: Sequence[Group], dataset: str) -> Figure:
    """Tau of answers with quality and lag, one data set, a panel per guesser, a dot for each of SHORT."""
    first = groups[0]
    panels: dict[str, list[Dot]] = {}
    for group in groups:
        dots = panels.setdefault(group.guesser, [])
        for tau in group.taus:
            if tau.a in SHORT and tau.b in group.drawn and tau.tau is not None and tau.low is not None:
                number = SHORT.index(tau.a)
                place = group.drawn.index(tau.b) + 0.22 * (number - 1)
                row = Row((tau.b,), tau.a, tau.tau, tau.low, tau.high)
                dots.append((place, row, look(number, group.metrics[tau.a].label)))
    names = [m.label + " ↓" * (not m.higher_is_better) for m in (first.metrics[name] for name in first.drawn)]
    figure = forest(panels, names, COLUMN, "Kendall's tau; 1: both rank the systems alike; ↓: less is better")
    n = f"{first.taus[0].systems} systems, {first.taus[0].n} questions"
    figure.suptitle(f"{dataset}, {n}, 95% intervals", fontsize=8)
    return figure
