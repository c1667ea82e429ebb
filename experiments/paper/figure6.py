"""Figure 6: average log MRR over the source read, for each k, full input and the human translation.

    sqa reproduce fig6

The source is cut into bins of equal length in characters.  A question's value in a bin is the natural log of the
reciprocal rank of its answer, at the last target word written when the bin has been read.  It is -4 if the answer is
not among the first 50 (ln(1/50) = -3.9) or if no target word is written yet.  A line is the mean over questions,
with a 95% band; every question has a value in every bin.  The CSV file contains all bands.  Only three are drawn,
because more would overlap.  The human translation is shown sentence by sentence, like full input.

Claims, after Han, Carpuat and Boyd-Graber (2022).  Log MRR rises for every k as more is read.  In the first half the
smallest k is above full input, which waits for the end of each sentence; at the end it is below.  After the first
third k = 9 is above the mean of the other k.  The differences are printed and written next to the figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

import numpy as np

from experiments.lab.ledger import Row, row_of
from experiments.outputs import Outputs, gap
from experiments.paper.wait_k_runs import WAIT_K, FigureConfig, Runs, nameable, runs_of
from sqa.core.differences import Comparison, compare
from sqa.core.significance import Mean, bootstrap_band, mean_curve, means
from sqa.report import plots
from sqa.report.figures import log_ranks_at
from sqa.results import Frame

HUMAN = "human"
BEST = 9  # the best k according to the paper
BINS = ("dataset", "guesser", "k", "bin")  # columns

Lines = Mapping[int | str, np.ndarray]  # k, or HUMAN -> (n, bins) log reciprocal ranks


def main(config_path: Path, runs: Path) -> None:
    """Write numbers, figures and differences of Figure 6; print the differences."""
    grid = runs_of(config_path, runs)
    lines, outputs = lines_of(grid), Outputs(runs / grid.config.name)
    for dataset in grid.datasets:
        bands = [binned(grid, dataset, guesser, lines[dataset, guesser]) for guesser in grid.contestants]
        rows = Frame(BINS, tuple(chain.from_iterable(bands))).rows
        stem = f"figure6_{Path(dataset).name}"
        outputs.rows(f"{stem}.csv", BINS, rows)
        outputs.picture(stem, over_source, rows, grid.config)
    outputs.differences(of_lines(grid, lines), grid.left_out)
    outputs.end()


def lines_of(grid: Runs) -> dict[tuple[str, str], Lines]:
    """Return the lines of each (data set, guesser), the human translation last."""
    config = grid.config
    guessers = {contestant.label: contestant.guesser for contestant in config.contestants}
    lines: dict[tuple[str, str], Lines] = {}
    for dataset, guesser in product(grid.datasets, grid.contestants):
        by_k: dict[int | str, np.ndarray] = {}
        for row in grid.of(dataset, guesser):
            traces = row.run.traces
            name = HUMAN if row.cell.family == "reference" else row.cell.k
            by_k[name] = np.array([log_ranks_at(trace, config.bins) for trace in traces])
        if config.questions != "all":
            questions = [trace.question for trace in traces]
            kept = nameable([guessers[guesser]], questions, config.questions, grid.parts)
            by_k = {name: values[kept] for name, values in by_k.items()}
        lines[dataset, guesser] = by_k
    return lines


def binned(grid: Runs, dataset: str, guesser: str, lines: Lines) -> Iterator[Row]:
    """Yield the value of every line in every bin, with its band over questions."""
    for k, values in lines.items():
        band = bootstrap_band(means(values), mean_curve, grid.base.resamples, grid.base.seed)
        for number, interval in enumerate(band, 1):
            yield row_of((dataset, guesser, str(k), str(number)), "log-mrr", interval, "nats")


def of_lines(grid: Runs, lines: Mapping[tuple[str, str], Lines]) -> Iterator[Row]:
    """Yield Figure 6's claims as differences, for every data set and guesser."""

    def minus(a: np.ndarray, b: np.ndarray) -> Comparison:
        return compare(means(a), means(b), Mean("log-mrr"), grid.base.resamples, grid.base.seed)

    for (dataset, guesser), by_k in lines.items():
        where = (dataset, WAIT_K, guesser)
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
    """Draw one data set's Figure 6: a panel for each guesser, a line for each k and the human translation.

    Only the first k, full input and the human translation have bands.
    """
    kind = "questions" if config.questions == "all" else "guessable questions"
    panels = []
    for guesser in dict.fromkeys(row["guesser"] for row in rows):
        of_guesser = [row for row in rows if row["guesser"] == guesser]
        banded = (of_guesser[0]["k"], "full", HUMAN)
        shown = [row if row["k"] in banded else replace(row, low=None, high=None) for row in of_guesser]
        lines = plots.lines(shown, "k", "bin", label=lambda k: k if k == HUMAN else f"k = {k}")
        read = {number: 100 * int(number) / config.bins for number in lines[0].by_k}
        title = f"{guesser}, {of_guesser[0]['dataset']}, {of_guesser[0].n} {kind}"
        panels.append(plots.Panel(title, [line._replace(x=read) for line in lines], "average log MRR (nats)"))
    return plots.over_k([panels], "source read (% of its characters)", 2.4)
