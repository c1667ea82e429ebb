"""Figure 6: average log MRR over the source read, on the guessable questions: each k, full input, human translation.

    sqa reproduce fig6

The source is cut into bins of equal length in characters.  A question's value in a bin is the natural log of 1 / rank
of its answer at the newest target word once the bin has been read; -4 where the answer is not among the first 50
(ln(1/50) = -3.9) or no target word was written yet.  A line is the mean over questions, each of which has a value in
every bin, and its 95% band is over questions (in the numbers for every line, drawn for three).  The column by_step of
the numbers is the other reading of "average": all steps of all questions that fall into the bin, pooled (metric
log-mrr-curve), undefined where there is none.

A question is guessable where the guesser can name its answer (Table 1 counts them): which ones these are does not hang
on any translation.  The human translation is read as full input reads, a sentence at a time.

Claims, after Figure 6 of Han, Carpuat and Boyd-Graber (2022): log MRR rises for every k as more is read; in the first
half a small k knows more than full input, which waits for the end of each sentence; at the end it knows less; after
the first third k = 9 is above the other k.  The differences are printed
and written beside the figures.

The runs are those of `sqa ablation`; one that is in the store is not made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from tqdm import tqdm

from experiments.contestant import Value, components
from experiments.contestants import MeanCurve, NamedContestant, Runs, check_labels, runs_of
from experiments.grid import workshop
from experiments.made import Difference, Made, gap
from experiments.studies.guesser_report import knows
from sqa.core.errors import ConfigError
from sqa.core.registry import GUESSERS
from sqa.core.significance import Band, Comparison, bootstrap_band, compare
from sqa.metrics.qa import LogRankCurve, log_reciprocal_rank
from sqa.metrics.ratio import ratio, ratio_many
from sqa.report.figure_style import COLUMN, GREY, save, style
from sqa.run.config import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.grid import Row
    from sqa.core.trace import QuestionTrace
    from sqa.core.types import Question
    from sqa.run.parts import Parts

HUMAN = "human"
BEST = 9  # the k that the paper finds on top
FLOOR = -4.0  # log reciprocal rank of an answer that is not listed
# Viridis with its light end darkened, for colours that have an order.
LINES = ("#440154", "#414487", "#2A788E", "#22A884", "#7AD151", "#B8AE00")


@dataclass(frozen=True, slots=True)
class Figure6Config:
    """What `sqa reproduce fig6` reads; configs/figure6.yaml explains each key."""

    name: str
    ablation: Path
    contestants: tuple[NamedContestant, ...]
    bins: int = 25
    questions: Literal["guessable", "all"] = "guessable"

    def __post_init__(self) -> None:
        problems = check_labels(self.contestants, "contestants")
        problems += [] if self.bins >= 2 else [f"bins: must be >= 2, got {self.bins}"]
        if problems:
            raise ConfigError(problems)


class Line(NamedTuple):
    """One k of one guesser on one data set."""

    k: int | str  # HUMAN: the human translation
    values: np.ndarray  # (n, bins) log reciprocal ranks
    band: Band
    by_step: np.ndarray  # (bins,) pooled over steps, nan where there is none


Lines = Mapping[tuple[str, str], Sequence[Line]]  # by data set and registered name of the guesser


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig6`: run what the store lacks; numbers, figures and differences; the last on stdout."""
    config, parts = load(config_path, Figure6Config), workshop(runs).parts
    found = runs_of(config, config_path, runs, parts)
    lines = lines_of(found, config, runs, parts)
    made = Made(runs / config.name)
    for dataset in found.datasets:
        mine = {found.labels[guesser]: lines[dataset, guesser] for guesser in found.labels}
        made.csv(f"figure6_{Path(dataset).name}.csv", table(mine, dataset))
        made.add(draw(mine, dataset, config.questions, made.folder))
    made.differences(differences_of(found, lines), found.left_out)
    made.end()


# ------------------------------------------------------------------------------------------------------- numbers


def at_bin_ends(trace: QuestionTrace, bins: int) -> np.ndarray:
    """(bins,): log reciprocal rank at the newest step when (b + 1) / bins of the source was read, FLOOR before any."""
    logs = np.concatenate([[FLOOR], log_reciprocal_rank(trace.rank, floor=FLOOR)])  # (steps + 1,)
    ends = np.arange(1, bins + 1) / bins
    steps = np.searchsorted(trace.fraction, ends + 1e-9, side="right")  # fraction never decreases; 1e-9: its rounding
    return logs[steps]


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean over questions of one value; stats = [value, 1]."""

    name: str = "log-mrr"

    def score(self, stats: np.ndarray) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        return ratio_many(stats)


def lines_of(found: Runs, config: Figure6Config, runs: Path, parts: Parts) -> Lines:
    """Read the traces of every run from the store; the line of the human translation is the last one."""
    from sqa.files.store import Store
    from sqa.run.pipeline import run

    guessers = {contestant.label: contestant.guesser for contestant in config.contestants}
    todo: dict[tuple[str, str], Sequence[Row]] = {
        (dataset, guesser): [*found.of(dataset, guesser), *found.of(dataset, guesser, "reference")]
        for dataset in found.datasets
        for guesser in found.labels
    }
    lines: dict[tuple[str, str], list[Line]] = {key: [] for key in todo}
    with tqdm(total=sum(map(len, todo.values())), desc="reading", unit="run", mininterval=1) as bar:
        for (dataset, guesser), rows in todo.items():
            kept: np.ndarray | None = None
            for row in rows:
                traces = run(row.cell.run, Store(runs), parts=parts, progress=False).traces
                if kept is None:
                    asked = [trace.question for trace in traces]
                    kept = chosen(guessers[found.labels[guesser]], asked, config.questions, parts)
                mine = [trace for trace, keep in zip(traces, kept, strict=True) if keep]
                name = HUMAN if row.cell.family == "reference" else row.cell.k
                lines[dataset, guesser].append(
                    line_of(name, mine, config.bins, found.config.resamples, found.config.seed)
                )
                bar.update()
    return lines


def chosen(guesser: Mapping[str, Value], asked: Sequence[Question], which: str, parts: Parts) -> np.ndarray:
    """(n,) bool: the questions that are shown; "guessable": those whose answer the guesser can name.

    A guesser that does not say which pages it has, or that has none of the answers: ConfigError.
    """
    if which == "all":
        return np.ones(len(asked), dtype=bool)
    known = knows(parts.component(GUESSERS, components(guesser)[0]), asked)
    if known is None or not known.any():
        why = "does not say which answers it has" if known is None else f"has no answer of {asked[0].dataset}"
        raise ConfigError(f"questions: guessable: the guesser {guesser['name']!r} {why}; set `questions: all`")
    return known


def line_of(k: int | str, traces: Sequence[QuestionTrace], bins: int, resamples: int, seed: int) -> Line:
    """One line of the figure."""
    pooled, values, steps = LogRankCurve(bins, floor=FLOOR), [], []
    for trace in traces:
        values.append(at_bin_ends(trace, bins))
        steps.append(pooled.stats(trace))
    table = np.array(values)  # (n, bins)
    band = bootstrap_band(np.hstack([table, np.ones((len(table), 1))]), MeanCurve("log-mrr"), resamples, seed)
    return Line(k, table, band, pooled.score_many(np.sum(steps, axis=0, keepdims=True))[0])


def table(lines: Mapping[str, Sequence[Line]], dataset: str) -> list[list[str]]:
    """The drawn numbers: one line per guesser, k and bin."""
    rows = [["dataset", "guesser", "k", "from", "to", "questions", "log_mrr", "low", "high", "by_step"]]
    for label, mine in lines.items():
        for line in mine:
            edges = np.linspace(0, 1, len(line.by_step) + 1)
            columns = (edges[:-1], edges[1:], line.band.value, line.band.low, line.band.high, line.by_step)
            for start, end, *numbers in zip(*columns, strict=True):
                cells = ["n/a" if np.isnan(x) else f"{x:.6f}" for x in numbers]
                rows.append([dataset, label, str(line.k), f"{start:.4g}", f"{end:.4g}", str(line.band.n), *cells])
    return rows


# --------------------------------------------------------------------------------------------------- differences


def differences_of(found: Runs, lines: Lines) -> Iterator[Difference]:
    """The claims of the docstring as differences, for every data set and guesser."""
    resamples, seed = found.config.resamples, found.config.seed
    for (dataset, guesser), mine in lines.items():
        where = (dataset, "wait-k", found.labels[guesser])
        waiting = [line for line in mine if line.k != HUMAN]
        small, full = waiting[0], waiting[-1]
        half, third = small.values.shape[1] // 2, -(-small.values.shape[1] // 3)
        for line in waiting:
            rise = _compare(line.values[:, -1], line.values[:, 0], resamples, seed)
            yield gap(*where, f"k={line.k}: log MRR rises from the first to the last bin", rise, ".2f")
        early = _compare(small.values[:, :half].mean(axis=1), full.values[:, :half].mean(axis=1), resamples, seed)
        yield gap(*where, f"in the first half k={small.k} knows more than full input", early, ".2f")
        late = _compare(full.values[:, -1], small.values[:, -1], resamples, seed)
        yield gap(*where, f"at the end full input knows more than k={small.k}", late, ".2f")
        others = [line.values for line in waiting if line.k not in (BEST, "full")]
        if len(others) + 2 == len(waiting) and others:
            [best] = [line.values for line in waiting if line.k == BEST]
            top = _compare(
                best[:, third:].mean(axis=1), np.mean(others, axis=0)[:, third:].mean(axis=1), resamples, seed
            )
            yield gap(*where, f"after the first third k={BEST} knows more than the mean of the other k", top, ".2f")


def _compare(a: np.ndarray, b: np.ndarray, resamples: int, seed: int) -> Comparison:
    """a - b of one value per question (n,), paired."""
    one, other = (np.stack([values, np.ones(len(values))], axis=1) for values in (a, b))
    return compare(one, other, Mean(), resamples, seed)


# ------------------------------------------------------------------------------------------------------- figure


def draw(lines: Mapping[str, Sequence[Line]], dataset: str, which: str, folder: Path) -> list[Path]:
    """One data set's figure, one column wide, a panel per guesser; returns the PDF and the PNG."""
    from matplotlib import pyplot

    with style():
        size = (COLUMN, 0.6 + 2.1 * len(lines))
        figure, grid = pyplot.subplots(len(lines), 1, figsize=size, layout="constrained", sharex=True, squeeze=False)
        for axes, (label, mine) in zip(grid[:, 0], lines.items(), strict=True):
            kind = "questions" if which == "all" else "guessable questions"
            axes.set_title(f"{label}, {dataset}, {mine[0].band.n} {kind}", loc="left")
            axes.set_ylabel("average log MRR (nats)")
            _panel(axes, mine)
        grid[-1, 0].set_xlabel("source read (% of its characters)\nbands: 95%, of the first k, full input and human")
        return save(figure, folder, f"figure6_{Path(dataset).name}")


def _panel(axes: Axes, lines: Sequence[Line]) -> None:
    """A line for each k; full input in grey, human in black, the others from dark (small k) to light.

    Seven bands would hide one another: three have theirs.  The names stand in the empty corner, in the order in which
    the lines lie before they meet.
    """
    finite = [line for line in lines if line.k not in ("full", HUMAN)]
    for i, line in enumerate(lines):
        at = i * (len(LINES) - 1) // max(1, len(finite) - 1)
        colour, name, dash = LINES[min(at, len(LINES) - 1)], f"k = {line.k}", "-"
        if line.k in ("full", HUMAN):
            colour, name, dash = (GREY, "full input", "--") if line.k == "full" else ("#000000", HUMAN, ":")
        x = 100 * np.arange(1, len(line.by_step) + 1) / len(line.by_step)
        if i == 0 or line.k in ("full", HUMAN):
            axes.fill_between(x, line.band.low, line.band.high, color=colour, alpha=0.12, linewidth=0)
        axes.plot(x, line.band.value, color=colour, linestyle=dash, linewidth=1.1, label=name)
    axes.set_xlim(0, 100)
    axes.set_ylim(FLOOR - 0.05, 0)
    axes.legend(loc="upper left", labelcolor="linecolor", handlelength=1.6, labelspacing=0.2)
