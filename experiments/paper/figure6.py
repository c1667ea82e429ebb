"""Figure 6: average log MRR over the source read, for each k, full input and the human translation.

    sqa reproduce fig6

The source is cut into bins of equal length in characters.  A question's value in a bin is the natural log of the
reciprocal rank of its answer, at the last target word written when the bin has been read.  It is -4 if the answer is
not among the first 50 (ln(1/50) = -3.9) or if no target word is written yet.  A line is the mean over questions,
with a 95% band; every question has a value in every bin.  A translator with several trainings has their mean as its
line, and one standard deviation as its band.  The CSV file contains all bands.  Of the 95% bands, only three are
drawn, because more would overlap.  The human translation is shown sentence by sentence, like full input.

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

from experiments.outputs import Outputs, gap
from experiments.paper.figure3 import BANDS
from experiments.paper.wait_k_runs import FigureConfig, Runs, nameable, runs_of
from experiments.results_book.ledger import Row, row_of
from sqa.core import FULL, Comparison, Interval, Mean, bootstrap_band, compare, mean_curve, means
from sqa.report import plots
from sqa.report.figures import log_ranks_at
from sqa.results import Frame

HUMAN = "human"
BEST = 9  # the best k according to the paper
BINS = ("dataset", "guesser", "translator", "k", "bin", "trainings")  # columns

Lines = Mapping[int | str, np.ndarray]  # k, or HUMAN -> (trainings, n, bins) log reciprocal ranks


def main(config_path: Path, runs: Path) -> None:
    """Write numbers, figures and differences of Figure 6; print the differences."""
    grid = runs_of(config_path, runs)
    lines, outputs = lines_of(grid), Outputs(runs / grid.config.name)
    for dataset in grid.datasets:
        bands = [binned(grid, where, by_k) for where, by_k in lines.items() if where[0] == dataset]
        frame = Frame(BINS, tuple(chain.from_iterable(bands)))
        stem = f"figure6_{Path(dataset).name}"
        outputs.rows(f"{stem}.csv", frame)
        outputs.picture(stem, over_source, frame.rows, grid.config)
    outputs.differences(of_lines(grid, lines), grid.left_out)
    outputs.end()


def lines_of(grid: Runs) -> dict[tuple[str, str, str], Lines]:
    """Return the lines of each (data set, guesser, translator), the human translation last."""
    config = grid.config
    guessers = {contestant.label: contestant.guesser for contestant in config.contestants}
    lines: dict[tuple[str, str, str], Lines] = {}
    for dataset, guesser, label in product(grid.datasets, grid.contestants, grid.labels):
        by_k: dict[int | str, list[np.ndarray]] = {}
        for row in grid.of(dataset, guesser, label):
            traces = row.run.traces
            values = np.array([log_ranks_at(trace, config.bins) for trace in traces])
            if config.questions != "all":
                questions = [trace.question for trace in traces]
                values = values[nameable([guessers[guesser]], questions, config.questions, grid.parts)]
            by_k.setdefault(HUMAN if row.cell.family == "reference" else row.cell.k, []).append(values)
        if len(by_k) > 1:  # the translator has runs on this data set
            lines[dataset, guesser, label] = {k: np.stack(trainings) for k, trainings in by_k.items()}
    return lines


def binned(grid: Runs, where: tuple[str, str, str], lines: Lines) -> Iterator[Row]:
    """Yield the value of every line in every bin, with its band over questions or over trainings."""
    for k, trainings in lines.items():
        count, n, _ = trainings.shape
        if count == 1:
            band = bootstrap_band(means(trainings[0]), mean_curve, grid.base.resamples, grid.base.seed)
        else:
            curves = trainings.mean(axis=1)  # (trainings, bins)
            spread, curve = curves.std(axis=0, ddof=1), curves.mean(axis=0)
            ends = np.stack([curve, curve - spread, curve + spread], axis=1).tolist()
            band = [Interval(value, low, high, n) for value, low, high in ends]
        for number, interval in enumerate(band, 1):
            yield row_of((*where, str(k), str(number), str(count)), "log-mrr", interval, "nats")


def of_lines(grid: Runs, lines: Mapping[tuple[str, str, str], Lines]) -> Iterator[Row]:
    """Yield Figure 6's claims as differences, for every data set, guesser and translator."""

    def minus(a: np.ndarray, b: np.ndarray) -> Comparison:
        return compare(means(a), means(b), Mean("log-mrr"), grid.base.resamples, grid.base.seed)

    for (dataset, guesser, label), by_k in lines.items():
        where = (dataset, label, guesser)
        waiting = {k: values.mean(axis=0) for k, values in by_k.items() if k != HUMAN}  # k -> (n, bins)
        smallest, small = next(iter(waiting.items()))
        half, third = small.shape[1] // 2, -(-small.shape[1] // 3)
        for k, values in waiting.items():
            rise = minus(values[:, -1], values[:, 0])
            yield gap(*where, f"k={k}: log MRR rises from the first to the last bin", rise, ".2f")
        if (full := waiting.get(FULL)) is not None and len(waiting) > 1:
            early = minus(small[:, :half].mean(axis=1), full[:, :half].mean(axis=1))
            yield gap(*where, f"in the first half k={smallest} knows more than full input", early, ".2f")
            late = minus(full[:, -1], small[:, -1])
            yield gap(*where, f"at the end full input knows more than k={smallest}", late, ".2f")
        others = [values for k, values in waiting.items() if k not in (BEST, FULL)]
        if BEST in waiting and others:
            top = minus(*(values[:, third:].mean(axis=1) for values in (waiting[BEST], np.mean(others, axis=0))))
            yield gap(*where, f"after the first third k={BEST} knows more than the mean of the other k", top, ".2f")


def over_source(rows: Sequence[Row], config: FigureConfig) -> plots.Figure:
    """Draw one data set's Figure 6, with a row of panels for each translator and a panel for each guesser."""
    kind = "questions" if config.questions == "all" else "guessable questions"
    by_panel: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_panel.setdefault((row["translator"], row["guesser"]), []).append(row)
    ks = list(dict.fromkeys(row["k"] for row in rows if row["k"] != HUMAN))
    names = [*sorted(ks, key=plots.order), HUMAN]
    grid: dict[str, list[plots.Panel]] = {}
    for (label, guesser), of_panel in by_panel.items():
        banded = (of_panel[0]["k"], FULL, HUMAN)
        shown = [r if r["trainings"] != "1" or r["k"] in banded else replace(r, low=None, high=None) for r in of_panel]
        lines = plots.lines(
            shown, "k", "bin", names, label=lambda k: k if k == HUMAN else f"k = {k}", trainings="trainings"
        )
        read = {number: 100 * int(number) / config.bins for number in lines[0].by_k}
        title = f"{label}, {guesser}, {of_panel[0].n} {kind}"
        panel = plots.Panel(title, [line._replace(x=read) for line in lines], "average log MRR (nats)")
        grid.setdefault(label, []).append(panel)
    xlabel = (
        f"source read (% of its characters)\n{BANDS};\nof the latter only those of the first k, full input and human"
    )
    colours = (*plots.ramp(len(ks)), "black")
    return plots.over_k(list(grid.values()), xlabel, 2.4, title=rows[0]["dataset"], colours=colours)
