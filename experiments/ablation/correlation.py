"""Quality, lag and answers of every system; and does a quality metric rank the systems as expected wins do?

    sqa reproduce correlation

After the abstract of Han, Carpuat and Boyd-Graber (2022), that usual evaluations of simultaneous translation miss what
answering needs.  That tau is below 1 shows nothing, since chance alone orders equal systems anew.
The systems are the translators of the ablation at every k; the human translation is in the table, but not ranked, since
it is what quality is measured against.  Tau and its interval: sqa/report/correlation.py.

Every metric that the runs have is in the numbers, those of a config's `quality:` too; one that a run could not compute
says "not computed" and why.  The paper has no such table.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.contestant import names_of
from experiments.grid import AblationConfig, cells, run_cells, usable
from experiments.made import Made
from sqa.core.errors import ConfigError
from sqa.files.store import digest
from sqa.report.correlation import ANSWERS, LEAST, Correlation, comparable, correlate, pairs_of
from sqa.report.figure_style import COLOURS, COLUMN, GREY, save, style
from sqa.report.markdown import head, row
from sqa.run import folder as folders
from sqa.run.config import RunConfig, load, to_mapping
from sqa.run.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HUMAN = "human translation"
SHORT = ("ew", "oracle-ew", "accuracy")  # drawn, with a colour each


@dataclass(frozen=True, slots=True)
class CorrelationConfig:
    """What `sqa reproduce correlation` reads; configs/correlation.yaml explains each key."""

    name: str
    ablation: Path
    runs: tuple[str, ...] = ()
    resamples: int = 10_000

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ConfigError(f"resamples: must be >= 1, got {self.resamples}")


class System(NamedTuple):
    """A row of the table."""

    label: str
    k: str  # "" where there is none
    run: RunFolder
    report: dict[str, dict[str, str]]  # metric -> its line of the run's report

    @property
    def name(self) -> str:
        return f"{self.label}, k={self.k}" if self.k else self.label


class Group(NamedTuple):
    """The systems that answer the same questions through the same guesser."""

    dataset: str
    guesser: str
    systems: list[System]
    metrics: dict[str, Any]  # by name, those that every system could have
    taus: list[Correlation]
    notes: list[str]

    def kind(self, metric: str) -> str:
        """What a metric measures."""
        return self.metrics[metric].kind


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce correlation`: run what the store lacks; numbers, figure, table; the last on stdout."""
    config = load(config_path, CorrelationConfig)
    base = load(config_path.parent / config.ablation, AblationConfig)
    groups = [group_of(*item, config.resamples) for item in systems(config, base, runs).items()]
    made = Made(runs / config.name)
    made.csv("correlation.csv", scores(groups))
    made.csv("correlation_tau.csv", taus(groups))
    for dataset in dict.fromkeys(group.dataset for group in groups):
        made.add(draw([group for group in groups if group.dataset == dataset and group.taus], made.folder))
    made.page("correlation.md", report(groups))
    made.end()


# ------------------------------------------------------------------------------------------------------- the systems


def systems(config: CorrelationConfig, base: AblationConfig, runs: Path) -> dict[tuple[str, str], list[System]]:
    """(data set, guesser) -> its systems: the ablation's of one model for every k, then the config's own runs."""
    base = replace(base, sweeps={})
    todo = [cell for cell in cells(base, usable(base), {}) if cell.k != "diagonal"]
    more = [read_system(runs / name, name, "") for name in config.runs]
    found: dict[tuple[str, str], list[System]] = {}
    for cell in (finished.cell for finished in run_cells(todo, base, runs)):
        human = cell.family == "reference"
        system = read_system(runs / cell.run.name, HUMAN if human else cell.family, "" if human else str(cell.k))
        found.setdefault((cell.dataset, cell.guesser), []).append(system)
    names = names_of(base.contestants)
    for system in more:
        key = (system.run.config.dataset.name, _contestant(system.run.config, names))
        if key not in found or found[key][0].run.dataset != system.run.dataset:
            raise ConfigError(f"runs: {system.label} is on {key[0]} with guesser {key[1]}, which no other system is")
        found[key].append(system)
    return found


def _contestant(run: RunConfig, names: Mapping[str, str]) -> str:
    """The name of the contestant that answered in a run: the ablation's for the same one, else its guesser's."""
    if run.guesser is None:
        return "none"
    return names.get(digest(to_mapping((run.guesser, run.buzzer))), run.guesser.name)


def read_system(folder: Path, label: str, k: str) -> System:
    """A finished run with its report."""
    run = folders.read(folder)
    with (folder / folders.REPORT).open(encoding="utf-8", newline="") as file:
        lines = {line["metric"]: line for line in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    return System(label, k, run, lines)


def group_of(key: tuple[str, str], found: list[System], resamples: int) -> Group:
    """The group and its correlations."""
    ranked = [system for system in found if system.label != HUMAN]
    names, notes = comparable([(system.name, system.run.signatures) for system in ranked or found])
    first = (ranked or found)[0].run
    metrics = {metric.name: metric for metric in folders.metrics_of(names, first)}
    correlations: list[Correlation] = []
    if len(ranked) < LEAST:
        notes.append(f"correlations: not computed, {len(ranked)} systems, at least {LEAST} are needed")
    else:
        pairs = pairs_of([name for name in ANSWERS if name in metrics], names)
        stats = {system.name: system.run.stats for system in ranked}
        correlations = correlate(stats, list(metrics.values()), pairs, resamples, first.config.seed)
    for note in notes:
        print(f"{key[0]}, {key[1]}: {note}", file=sys.stderr)
    return Group(*key, found, metrics, correlations, notes)


# ----------------------------------------------------------------------------------------------- numbers


def scores(groups: Sequence[Group]) -> list[list[str]]:
    """Every value of every system: one line per system and metric, six digits."""
    rows = [["dataset", "guesser", "system", "k", "metric", "value", "low", "high", "n", "unit", "signature"]]
    for group in groups:
        for system in group.systems:
            for metric, line in system.report.items():
                refusal = system.run.refusals.get(metric)
                signature = line["signature"] if refusal is None else f"not computed: {refusal}"
                numbers = [line[key] for key in ("value", "low", "high", "n", "unit")]
                rows.append([group.dataset, group.guesser, system.label, system.k, metric, *numbers, signature])
    return rows


def taus(groups: Sequence[Group]) -> list[list[str]]:
    """Every correlation: one line per pair of metrics."""
    rows = [["dataset", "guesser", "metric", "with", "tau", "low", "high", "systems", "questions", "resamples",
             "undefined", "note"]]  # fmt: skip
    return rows + [[group.dataset, group.guesser, *tau.cells()] for group in groups for tau in group.taus]


def _tau(tau: Correlation) -> str:
    if tau.tau is None or tau.low is None or tau.high is None:
        return tau.note or "n/a"
    return f"{tau.tau:+.2f} [{tau.low:+.2f}, {tau.high:+.2f}]"


# --------------------------------------------------------------------------------------------------------- to read


def report(groups: Sequence[Group]) -> Iterator[str]:
    """Markdown: of each data set and guesser the correlations, what could not be computed, the signatures."""
    yield from ("# Do quality and lag rank the systems as answers do?", "", "The paper has no such table.")
    signatures: dict[str, None] = {}
    for group in groups:
        yield from ("", f"## {group.dataset}, answered by {group.guesser}", "")
        for m in dict.fromkeys(m for system in group.systems for m in system.run.refusals):
            reasons = dict.fromkeys(system.run.refusals[m] for system in group.systems if m in system.run.refusals)
            yield f"{m}: not computed, {'; '.join(reasons)}."
        yield from _taus(group, [m for m in group.metrics if "@" not in m])
        signatures |= dict.fromkeys(group.systems[0].report[m]["signature"] for m in group.metrics)
    yield from ("", "## Signatures", "")
    yield from (f"- `{signature}`" for signature in signatures)


def _taus(group: Group, shown: Sequence[str]) -> Iterator[str]:
    """The correlations of a group as a table: answers in the columns."""
    by_pair = {(tau.a, tau.b): tau for tau in group.taus}
    columns = [name for name in ANSWERS if any(tau.a == name for tau in group.taus)]
    ranked = sum(system.label != HUMAN for system in group.systems)
    if columns:
        yield f"\nKendall's tau-b over {ranked} systems (not the human translation), 1 = they rank them alike:\n"
        yield from head(["", *columns])
        for b in shown:
            cells = [_tau(by_pair[a, b]) if (a, b) in by_pair else "" for a in columns]
            if any(cells):
                yield row([b, *cells])
    yield from (f"\n{note}" for note in group.notes)


# ----------------------------------------------------------------------------------------------------------- figure


def draw(groups: Sequence[Group], folder: Path) -> list[Path]:
    """Tau of answers with quality and lag, one data set, a panel per guesser; nothing where there is no tau."""
    from matplotlib import pyplot

    if not groups:
        return []
    shown = [m for kind in ("quality", "lag") for m in groups[0].metrics
             if groups[0].kind(m) == kind and "@" not in m]  # fmt: skip
    n, dataset = len(groups[0].systems[0].run.questions), groups[0].dataset
    with style():
        size = (COLUMN, 1.3 + 0.27 * len(shown))
        figure, grid = pyplot.subplots(1, len(groups), figsize=size, layout="constrained", sharey=True, squeeze=False)
        for axes, group in zip(grid[0], groups, strict=True):
            _panel(axes, group, shown)
            axes.set_title(group.guesser, loc="left")
        metrics = [groups[0].metrics[m] for m in shown]
        grid[0][0].set_yticks(range(len(shown)), [m.label + " ↓" * (not m.higher_is_better) for m in metrics])
        grid[0][0].invert_yaxis()
        figure.suptitle(
            f"{dataset}, {groups[0].taus[0].systems} systems, {n} questions, 95% intervals\n"
            "1: both rank the systems alike; ↓: less is better",
            fontsize=8, x=0.02, ha="left", linespacing=1.4,
        )  # fmt: skip
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=len(labels), labelcolor="linecolor", handletextpad=0.2
        )
        return save(figure, folder, f"correlation_{Path(dataset).name}")


def _panel(axes: Axes, group: Group, shown: Sequence[str]) -> None:
    """A row per metric, in it a dot with its interval for each of SHORT."""
    axes.axvline(0, color=GREY, linewidth=0.6)
    for i, (answer, marker) in enumerate(zip(SHORT, ("o", "s", "^"), strict=True)):
        found = {tau.b: tau for tau in group.taus if tau.a == answer and tau.tau is not None and tau.low is not None}
        rows = [(y, found[metric]) for y, metric in enumerate(shown) if metric in found]
        y = [place + 0.22 * (i - 1) for place, _ in rows]
        axes.hlines(y, [tau.low for _, tau in rows], [tau.high for _, tau in rows], color=COLOURS[i], linewidth=1)
        axes.plot([tau.tau for _, tau in rows], y, color=COLOURS[i], marker=marker, linestyle="",
                  label=group.metrics[answer].label if answer in group.metrics else answer)  # fmt: skip
    axes.set_xlim(-1.05, 1.05)
    axes.set_xticks([-1, 0, 1])
    axes.set_xlabel("Kendall's tau")
    axes.tick_params(axis="y", length=0)
