"""Figures 6, 7 and 10: wait-k's models of the ablation answered by several contestants.

    sqa reproduce fig6        # average log MRR over the source read: each k, full input, the human translation
    sqa reproduce fig7        # EW, oracle EW and accuracy over k, a line per guesser (Polish)
    sqa reproduce fig10       # the same (Spanish)

Figure 6: the source is cut into bins of equal length in characters.  A question's value in a bin is the natural log of
1 / rank of its answer at the newest target word once the bin has been read; -4 where the answer is not among the first
50 (ln(1/50) = -3.9) or no target word was written yet.  A line is the mean over questions, each of which has a value in
every bin, and its 95% band is over questions (in the numbers for every line, drawn for three: seven would hide one
another).  The human translation is read as full input reads, a sentence at a time.

`questions: guessable` are those whose answer the guesser can name (Table 1 counts them), `matched` those whose answer
any of the guessers compared can name, as the paper takes those whose answer its English training questions have.

Claims, after Figures 6 and 7 of Han, Carpuat and Boyd-Graber (2022).  Log MRR rises for every k as more is read; in the
first half a small k knows more than full input, which waits for the end of each sentence; at the end it knows less;
after the first third k = 9 is above the other k.  For each guesser EW rises, peaks and falls with k; oracle EW peaks at
a smaller k than EW; full input has the worse EW and the better accuracy.  For each pair of guessers: they order the k
alike (Kendall's tau over k).  The differences are printed and written beside the figures.

The runs are those of `sqa ablation`; one that is in the store is not made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np

from experiments.contestants import Contestant, NamedContestant, Value, check_labels, components, names_of, sift
from experiments.grid import AblationConfig, finished, language_of, workshop
from experiments.grid import Row as GridRow
from experiments.lab import grid_rows
from experiments.lab.ledger import Row, of_band
from experiments.ladders import POOLED, differences, ladders
from experiments.outputs import LeftOut, Outputs, gap
from experiments.studies.guesser_report import knows
from sqa import metrics as metric_names
from sqa.core.differences import Comparison, MeanCurve, bootstrap_band, compare, curve_stats
from sqa.core.errors import ConfigError
from sqa.core.registry import BUZZERS, GUESSERS
from sqa.core.significance import Mean, bootstrap_many, means
from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.data.languages import code_of
from sqa.metrics.qa import log_reciprocal_rank
from sqa.pipeline import folder as folders
from sqa.pipeline.config import load
from sqa.pipeline.parts import Parts
from sqa.report import plots

WAIT_K = "wait-k"  # the translator that the figures are about
HUMAN = "human"
BEST = 9  # the k that the paper finds on top in Figure 6
FLOOR = -4.0  # log reciprocal rank of an answer that is not listed
BINS = ("dataset", "guesser", "k", "bin")  # columns of Figure 6
PANELS = {"ew": "expected wins (EW)", "oracle-ew": "oracle EW", "accuracy": "accuracy"}  # of Figure 7: metric -> title

Lines = Mapping[int | str, np.ndarray]  # k, or HUMAN -> (n, bins) log reciprocal ranks


@dataclass(frozen=True, slots=True)
class FigureConfig:
    """What `sqa reproduce fig6`, fig7 and fig10 read; configs/figure6.yaml and figure7.yaml explain each key."""

    name: str
    ablation: Path
    contestants: tuple[NamedContestant, ...]
    questions: Literal["guessable", "matched", "all"] = "all"
    bins: Annotated[int, "of Figure 6"] = 25
    language: Annotated[str | None, "of Figure 7"] = None

    def __post_init__(self) -> None:
        problems = check_labels(self.contestants, "contestants")
        problems += [] if self.bins >= 2 else [f"bins: must be >= 2, got {self.bins}"]
        if problems:
            raise ConfigError(problems)


class Runs(NamedTuple):
    """The ablation's runs of some contestants."""

    config: AblationConfig
    rows: list[GridRow]  # wait-k of every k, and the human translation at full input
    labels: dict[str, str]  # name of a contestant (Cell.guesser) -> its label
    left_out: list[LeftOut]

    @property
    def datasets(self) -> list[str]:
        """The available ones."""
        return list(dict.fromkeys(row.cell.dataset for row in self.rows))

    def of(self, dataset: str, guesser: str | None = None) -> list[GridRow]:
        """Rows of a data set and guesser (None: all), from the smallest k to full input, then the human translation."""
        rows = [row for row in self.rows if row.cell.dataset == dataset and guesser in (None, row.cell.guesser)]
        return sorted(rows, key=lambda row: (row.cell.family == "reference", plots.order(row.cell.k)))


def runs_of(
    wanted: Sequence[NamedContestant],
    ablation: Path,
    runs: Path,
    parts: Parts,
    metrics: Sequence[str] = (),
    language: str | None = None,
) -> Runs:
    """Run the wait-k models of the ablation's config with the contestants; what the store holds is not run again.

    The runs have the ablation's own names and keys, so those of a finished `sqa ablation` are found.  `metrics` are
    those that the figure cannot do without; `language` that of the data sets wanted, all where it is None.
    """
    base = load(ablation, AblationConfig)

    def make(contestant: NamedContestant) -> None:
        guesser, buzzer = components(contestant.guesser, contestant.buzzer)
        parts.component(GUESSERS, guesser)
        parts.component(BUZZERS, buzzer)

    present, left_out = sift(wanted, make)
    problems = [] if "full" in base.k else [f"{ablation.name} k: needs full, which the others are compared with"]
    problems += [f"{ablation.name} metrics: needs {name}" for name in metrics if name not in base.metrics]
    if problems:
        raise ConfigError(problems)
    contestants = tuple(Contestant(contestant.guesser, contestant.buzzer or {}) for contestant in present)
    reserved = names_of(base.contestants)
    labels = dict(zip(names_of(contestants, reserved).values(), (one.label for one in present), strict=True))
    systems = tuple(system for system in base.translators if system.label == WAIT_K)
    base = replace(base, contestants=contestants, sweeps={}, translators=systems)
    cells = {(WAIT_K, k) for k in base.k} | {("reference", "full")}
    languages = {code_of(system.language) for system in systems if language in (None, system.language)}
    rows = finished(
        base, runs, lambda cell: (cell.family, cell.k) in cells and language_of(cell.dataset) in languages, reserved
    )
    if not rows:
        wanted_in = f" in {language}" if language else ""
        raise ConfigError(f"{ablation.name} translators: no {WAIT_K} for a data set{wanted_in} that is here")
    return Runs(base, rows, labels, left_out)


def figure6(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig6`: run what the store lacks; numbers, figures and differences; the last on stdout."""
    config, parts = load(config_path, FigureConfig), workshop(runs).parts
    grid = runs_of(config.contestants, config_path.parent / config.ablation, runs, parts)
    lines = lines_of(grid, config, runs, parts)
    outputs = Outputs(runs / config.name)
    for dataset in grid.datasets:
        rows = [row for guesser in grid.labels for row in binned(grid, dataset, guesser, lines[dataset, guesser])]
        stem = f"figure6_{Path(dataset).name}"
        outputs.rows(f"{stem}.csv", BINS, rows)
        outputs.picture(stem, over_source, rows, config)
    outputs.differences(of_lines(grid, lines), grid.left_out)
    outputs.end()


def figure7(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig7`: run what the store lacks; numbers, figures and differences; the last on stdout."""
    config, parts = load(config_path, FigureConfig), workshop(runs).parts
    ablation = config_path.parent / config.ablation
    grid = runs_of(config.contestants, ablation, runs, parts, list(PANELS), config.language)
    grid = grid if config.questions == "all" else matched(grid, config, parts)
    outputs = Outputs(runs / config.name)
    for dataset in grid.datasets:
        stem, rows = f"{config.name}_{Path(dataset).name}", over_k(grid, dataset)
        outputs.rows(f"{stem}.csv", grid_rows.COLUMNS, rows)
        outputs.picture(stem, by_guesser, rows, config.questions)
    outputs.differences(of_guessers(grid), grid.left_out)
    outputs.end()


def nameable(
    guessers: Sequence[Mapping[str, Value]], questions: Sequence[Question], word: str, parts: Parts
) -> np.ndarray:
    """(n,) bool: the questions whose answer one of some guessers can name.

    None of them says which answers it has, or has one of these: ConfigError, which calls such questions by `word`.
    """
    masks = [knows(parts.component(GUESSERS, components(guesser)[0]), questions) for guesser in guessers]
    masks = [mask for mask in masks if mask is not None]
    if not np.any(masks):
        names = ", ".join(str(guesser["name"]) for guesser in guessers)
        why = f"is known to have an answer of {questions[0].dataset}; set `questions: all`"
        raise ConfigError(f"questions: {word}: no guesser of {names} {why}")
    return np.any(masks, axis=0)


# ------------------------------------------------------------------------------------------------------ Figure 6


def at_bin_ends(trace: QuestionTrace, bins: int) -> np.ndarray:
    """(bins,): log reciprocal rank at the newest step when (b + 1) / bins of the source was read, FLOOR before any."""
    logs = np.concatenate([[FLOOR], log_reciprocal_rank(trace.rank, floor=FLOOR)])  # (steps + 1,)
    ends = np.arange(1, bins + 1) / bins
    steps = np.searchsorted(trace.fraction, ends + 1e-9, side="right")  # fraction never decreases; 1e-9: its rounding
    return logs[steps]


def lines_of(grid: Runs, config: FigureConfig, runs: Path, parts: Parts) -> dict[tuple[str, str], Lines]:
    """(data set, guesser) -> its lines, of the traces of every run; that of the human translation is the last one."""
    guessers = {contestant.label: contestant.guesser for contestant in config.contestants}
    lines: dict[tuple[str, str], Lines] = {}
    for dataset, guesser in ((dataset, guesser) for dataset in grid.datasets for guesser in grid.labels):
        by_k: dict[int | str, np.ndarray] = {}
        for row in grid.of(dataset, guesser):
            traces = list(folders.open_run(runs / row.cell.run.name, parts).traces)
            name = HUMAN if row.cell.family == "reference" else row.cell.k
            by_k[name] = np.array([at_bin_ends(trace, config.bins) for trace in traces])
        if config.questions != "all":
            questions = [trace.question for trace in traces]
            kept = nameable([guessers[grid.labels[guesser]]], questions, config.questions, parts)
            by_k = {name: values[kept] for name, values in by_k.items()}
        lines[dataset, guesser] = by_k
    return lines


def binned(grid: Runs, dataset: str, guesser: str, lines: Lines) -> Iterator[Row]:
    """The value of every line in every bin, with its band over questions."""
    for k, values in lines.items():
        band = bootstrap_band(curve_stats(values), MeanCurve("log-mrr"), grid.config.resamples, grid.config.seed)
        cells = [(dataset, grid.labels[guesser], str(k), str(number + 1)) for number in range(values.shape[1])]
        yield from of_band(cells, "log-mrr", band, "nats")


def of_lines(grid: Runs, lines: Mapping[tuple[str, str], Lines]) -> Iterator[Row]:
    """Figure 6's claims as differences, for every data set and guesser."""

    def minus(a: np.ndarray, b: np.ndarray) -> Comparison:
        return compare(means(a), means(b), Mean("log-mrr"), grid.config.resamples, grid.config.seed)

    for (dataset, guesser), by_k in lines.items():
        where = (dataset, WAIT_K, grid.labels[guesser])
        waiting = {k: values for k, values in by_k.items() if k != HUMAN}
        (smallest, small), *_, (_, full) = waiting.items()
        half, third = small.shape[1] // 2, -(-small.shape[1] // 3)
        for k, values in waiting.items():
            rise = minus(values[:, -1], values[:, 0])
            yield gap(*where, f"k={k}: log MRR rises from the first to the last bin", rise, ".2f")
        early = minus(small[:, :half].mean(axis=1), full[:, :half].mean(axis=1))
        yield gap(*where, f"in the first half k={smallest} knows more than full input", early, ".2f")
        late = minus(full[:, -1], small[:, -1])
        yield gap(*where, f"at the end full input knows more than k={smallest}", late, ".2f")
        others = [values for k, values in waiting.items() if k not in (BEST, "full")]
        if BEST in waiting and others:
            top = minus(*(values[:, third:].mean(axis=1) for values in (waiting[BEST], np.mean(others, axis=0))))
            yield gap(*where, f"after the first third k={BEST} knows more than the mean of the other k", top, ".2f")


def over_source(rows: Sequence[Row], config: FigureConfig) -> plots.Figure:
    """One data set's Figure 6: a panel for each guesser, a line for each k and the human translation.

    The first k, full input and the human translation have their bands.
    """
    kind = "questions" if config.questions == "all" else "guessable questions"
    panels = []
    for guesser in dict.fromkeys(row.cell[1] for row in rows):
        of_guesser = [row for row in rows if row.cell[1] == guesser]
        banded = (of_guesser[0].cell[2], "full", HUMAN)
        shown = [row if row.cell[2] in banded else replace(row, low=None, high=None) for row in of_guesser]
        lines = plots.lines(shown, 2, 3, label=lambda k: k if k == HUMAN else f"k = {k}")
        read = {number: 100 * int(number) / config.bins for number in lines[0].by_k}
        title = f"{guesser}, {of_guesser[0].cell[0]}, {of_guesser[0].n} {kind}"
        panels.append(plots.Panel(title, [line._replace(x=read) for line in lines], "average log MRR (nats)"))
    return plots.over_k([panels], "source read (% of its characters)", 2.4)


# ----------------------------------------------------------------------------------------------- Figures 7 and 10


def matched(grid: Runs, config: FigureConfig, parts: Parts) -> Runs:
    """The same rows on the questions whose answer one of the guessers can name, with intervals over these."""
    guessers = [contestant.guesser for contestant in config.contestants if contestant.label in grid.labels.values()]
    masks = {
        dataset: nameable(guessers, parts.questions(grid.of(dataset)[0].cell.run.dataset), config.questions, parts)
        for dataset in grid.datasets
    }

    def only(row: GridRow) -> GridRow:
        mask = masks[row.cell.dataset]
        stats = {name: values[mask] for name, values in row.stats.items()}
        tables, metrics = [stats[name] for name in PANELS], metric_names.build(PANELS)
        intervals = bootstrap_many(tables, metrics, grid.config.resamples, grid.config.seed)
        return replace(row, n=int(mask.sum()), stats=stats, intervals=dict(zip(PANELS, intervals, strict=True)))

    return grid._replace(rows=list(map(only, grid.rows)))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's tau (a) of two guessers' values over K values of k: a curve of one point, for `bootstrap_band`.

    stats (n, 4 K): sum and count of each k for the first guesser, then for the second.
    """

    name: str = "agreement"

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        """(B, 4 K) -> (B, 1), -1 to 1; a tie counts for neither side."""
        values = (stats[:, 0::2] / stats[:, 1::2]).reshape(len(stats), 2, -1)  # (B, 2, K)
        first, other = np.triu_indices(values.shape[2], 1)
        signs = np.sign(values[:, :, first] - values[:, :, other])  # (B, 2, pairs)
        return (signs[:, 0] * signs[:, 1]).mean(axis=1, keepdims=True)


def of_guessers(grid: Runs) -> Iterator[Row]:
    """Figure 7's claims on every data set, with labels for the guessers' names."""
    for ladder in ladders(grid.rows):
        if ladder.dataset != POOLED:
            for row in differences(ladder):
                yield replace(row, cell=(*row.cell[:2], grid.labels[ladder.contestant], *row.cell[3:]))
    for dataset in grid.datasets:
        for a, b in combinations(grid.labels, 2):
            for metric in PANELS:
                rows = [row for g in (a, b) for row in grid.of(dataset, g) if row.cell.family == WAIT_K]
                stats = np.hstack([row.stats[metric] for row in rows])  # (n, 4 K)
                band = bootstrap_band(stats, Agreement(), grid.config.resamples, grid.config.seed)
                claim = f"the guessers order the k alike by {metric} (Kendall's tau)"
                cell = (dataset, WAIT_K, f"{grid.labels[a]}, {grid.labels[b]}", claim, f"{len(rows) // 2} k")
                yield from of_band([cell], "tau", band)


def over_k(grid: Runs, dataset: str) -> list[Row]:
    """What is drawn: of each guesser the metrics of wait-k at every k and of the human translation."""
    named = [
        replace(row, cell=replace(row.cell, guesser=label))
        for guesser, label in grid.labels.items()
        for row in grid.of(dataset, guesser)
    ]
    return [row for row in grid_rows.rows_of(named) if row.metric in PANELS]


def by_guesser(rows: Sequence[Row], which: str) -> plots.Figure:
    """One data set's Figure 7: a panel for each metric, a line with its band for each guesser, dotted its value for the
    human translation."""
    panels = []
    for metric, name in PANELS.items():
        of_metric = [row for row in rows if row.metric == metric]
        human = {row.cell[3]: row for row in of_metric if row.cell[1] == "reference"}
        lines = plots.lines((row for row in of_metric if row.cell[1] != "reference"), 3, 2)
        panels.append(plots.Panel(name, [line._replace(human=human[line.label]) for line in lines]))
    kind = "questions" if which == "all" else "questions with a matched answer"
    title = f"{rows[0].cell[0]}, {rows[0].n} {kind}, 95% bands"
    return plots.over_k([panels], "k (source words read first); dotted: the human translation", 2.4, title=title)
