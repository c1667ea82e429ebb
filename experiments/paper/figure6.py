"""Figure 6: average log MRR over the source read, on the guessable questions: each k, full input, human translation.

    sqa reproduce fig6

The source is cut into bins of equal length in characters.  A question's value in a bin is the natural log of 1 / rank
of its answer at the newest target word once the bin has been read; -4 where the answer is not among the first 50
(ln(1/50) = -3.9) or no target word was written yet.  A line is the mean over questions, each of which has a value in
every bin, and its 95% band is over questions (in the numbers for every line, drawn for three: seven would hide one
another).  The other reading of "average", all steps of all questions that fall into the bin, is a run's metric
log-mrr-curve.

A question is guessable where the guesser can name its answer (Table 1 counts them): which ones these are does not hang
on any translation.  The human translation is read as full input reads, a sentence at a time.

Claims, after Figure 6 of Han, Carpuat and Boyd-Graber (2022): log MRR rises for every k as more is read; in the first
half a small k knows more than full input, which waits for the end of each sentence; at the end it knows less; after the
first third k = 9 is above the other k.  The differences are printed and written beside the figures.

The runs are those of `sqa ablation`; one that is in the store is not made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from tqdm import tqdm

from experiments.contestant import Value, components
from experiments.contestants import MeanCurve, NamedContestant, Runs, check_labels, runs_of
from experiments.grid import workshop
from experiments.lab import curves
from experiments.lab.ledger import Row
from experiments.made import Difference, Made, gap
from experiments.studies.guesser_report import knows
from sqa.core.errors import ConfigError
from sqa.core.registry import GUESSERS
from sqa.core.significance import Comparison, bootstrap_band, compare
from sqa.metrics.qa import log_reciprocal_rank
from sqa.metrics.ratio import ratio, ratio_many
from sqa.report.figure_style import save, style
from sqa.run.config import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sqa.core.trace import QuestionTrace
    from sqa.core.types import Question
    from sqa.run.parts import Parts

HUMAN = "human"
BEST = 9  # the k that the paper finds on top
FLOOR = -4.0  # log reciprocal rank of an answer that is not listed
COLUMNS = ("dataset", "guesser", "k", "bin")

Lines = Mapping[int | str, np.ndarray]  # k, or HUMAN -> (n, bins) log reciprocal ranks


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


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig6`: run what the store lacks; numbers, figures and differences; the last on stdout."""
    config, parts = load(config_path, Figure6Config), workshop(runs).parts
    found = runs_of(config.contestants, config_path.parent / config.ablation, runs, parts)
    lines = lines_of(found, config, runs, parts)
    made = Made(runs / config.name)
    for dataset in found.datasets:
        rows = [row for guesser in found.labels for row in numbers(found, dataset, guesser, lines[dataset, guesser])]
        stem = f"figure6_{Path(dataset).name}"
        made.rows(f"{stem}.csv", COLUMNS, rows)
        with style():
            made.add(save(drawn(rows, config), made.folder, stem))
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


def lines_of(found: Runs, config: Figure6Config, runs: Path, parts: Parts) -> dict[tuple[str, str], Lines]:
    """(data set, guesser) -> its lines, of the traces of every run; that of the human translation is the last one."""
    from sqa.files.store import Store
    from sqa.run.pipeline import run

    guessers = {contestant.label: contestant.guesser for contestant in config.contestants}
    lines: dict[tuple[str, str], Lines] = {}
    with tqdm(total=len(found.rows), desc="reading", unit="run", mininterval=1) as bar:
        for dataset, guesser in ((dataset, guesser) for dataset in found.datasets for guesser in found.labels):
            mine: dict[int | str, np.ndarray] = {}
            for row in (*found.of(dataset, guesser), *found.of(dataset, guesser, "reference")):
                traces = list(run(row.cell.run, Store(runs), parts=parts, progress=False).traces)
                name = HUMAN if row.cell.family == "reference" else row.cell.k
                mine[name] = np.array([at_bin_ends(trace, config.bins) for trace in traces])
                bar.update()
            if config.questions == "guessable":
                asked = [trace.question for trace in traces]
                kept = nameable([guessers[found.labels[guesser]]], asked, config.questions, parts)
                mine = {name: values[kept] for name, values in mine.items()}
            lines[dataset, guesser] = mine
    return lines


def nameable(guessers: Sequence[Mapping[str, Value]], asked: Sequence[Question], word: str, parts: Parts) -> np.ndarray:
    """(n,) bool: the questions whose answer one of some guessers can name.

    None of them says which answers it has, or has one of these: ConfigError, which calls such questions by `word`.
    """
    masks = [knows(parts.component(GUESSERS, components(guesser)[0]), asked) for guesser in guessers]
    known = [mask for mask in masks if mask is not None]
    if not np.any(known):
        names = ", ".join(str(guesser["name"]) for guesser in guessers)
        why = f"is known to have an answer of {asked[0].dataset}; set `questions: all`"
        raise ConfigError(f"questions: {word}: no guesser of {names} {why}")
    return np.any(known, axis=0)


def numbers(found: Runs, dataset: str, guesser: str, lines: Lines) -> Iterator[Row]:
    """The value of every line in every bin, with its band over questions."""
    for k, values in lines.items():
        stats = np.hstack([values, np.ones((len(values), 1))])
        band = bootstrap_band(stats, MeanCurve("log-mrr"), found.config.resamples, found.config.seed)
        for number, (value, low, high) in enumerate(zip(band.value, band.low, band.high, strict=True), 1):
            cell = (dataset, found.labels[guesser], str(k), str(number))
            yield Row(cell, "log-mrr", float(value), float(low), float(high), band.n, "nats")


# --------------------------------------------------------------------------------------------------- differences


def differences_of(found: Runs, lines: Mapping[tuple[str, str], Lines]) -> Iterator[Difference]:
    """The claims of the docstring as differences, for every data set and guesser."""
    for (dataset, guesser), mine in lines.items():
        where = (dataset, "wait-k", found.labels[guesser])
        waiting = {k: values for k, values in mine.items() if k != HUMAN}
        (least, small), *_, (_, full) = waiting.items()
        half, third = small.shape[1] // 2, -(-small.shape[1] // 3)
        for k, values in waiting.items():
            rise = _compare(values[:, -1], values[:, 0], found)
            yield gap(*where, f"k={k}: log MRR rises from the first to the last bin", rise, ".2f")
        early = _compare(small[:, :half].mean(axis=1), full[:, :half].mean(axis=1), found)
        yield gap(*where, f"in the first half k={least} knows more than full input", early, ".2f")
        late = _compare(full[:, -1], small[:, -1], found)
        yield gap(*where, f"at the end full input knows more than k={least}", late, ".2f")
        others = [values for k, values in waiting.items() if k not in (BEST, "full")]
        if BEST in waiting and others:
            best, rest = (values[:, third:].mean(axis=1) for values in (waiting[BEST], np.mean(others, axis=0)))
            top = _compare(best, rest, found)
            yield gap(*where, f"after the first third k={BEST} knows more than the mean of the other k", top, ".2f")


def _compare(a: np.ndarray, b: np.ndarray, found: Runs) -> Comparison:
    """a - b of one value per question (n,), paired."""
    one, other = (np.stack([values, np.ones(len(values))], axis=1) for values in (a, b))
    return compare(one, other, Mean(), found.config.resamples, found.config.seed)


# ------------------------------------------------------------------------------------------------------- figure


def drawn(rows: Sequence[Row], config: Figure6Config) -> Figure:
    """One data set's figure: a panel for each guesser, a line for each k and the human translation.

    The first k, full input and the human translation have their bands.
    """
    kind = "questions" if config.questions == "all" else "guessable questions"
    panels = []
    for guesser in dict.fromkeys(row.cell[1] for row in rows):
        mine = [row for row in rows if row.cell[1] == guesser]
        lines = []
        for look, k in enumerate(dict.fromkeys(row.cell[2] for row in mine)):
            banded = look == 0 or k in ("full", HUMAN)
            by_bin = {row.cell[3]: row if banded else replace(row, low=None, high=None)
                      for row in mine if row.cell[2] == k}  # fmt: skip
            lines.append(curves.Line(k if k == HUMAN else f"k = {k}", look, by_bin))
        ends = {number: Row((), "read", 100 * int(number) / config.bins) for number in lines[0].by_k}
        title = f"{guesser}, {mine[0].cell[0]}, {mine[0].n} {kind}"
        panels.append(curves.Panel(title, lines, "average log MRR (nats)", [ends] * len(lines)))
    return curves.over_k([panels], "source read (% of its characters)", 2.4)
