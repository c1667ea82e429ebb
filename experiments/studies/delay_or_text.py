"""Delay or text: the full-input translation shown at wait-k's pace, compared with wait-k's own translation.

With the same text, only the pace differs (the cost of waiting).  At the same pace, only the text differs (the
benefit of waiting).  The guesses and buzzes depend only on the words of a text, so the traces of finished runs are
given new delays and scored again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from experiments.paper.figure3 import BEST, by_system
from experiments.results_book.item import finished_grid, of_grid
from experiments.results_book.ledger import Ledger, Row, measured
from experiments.results_book.tables import Column, pivot
from sqa import metrics as metric_names
from sqa.core import QuestionTrace
from sqa.report import plots

COLUMNS = ("dataset", "translator", "k", "part")
METRICS = ("ew", "oracle-ew")
FULL_TEXT = "full-input text"  # the full-input text, shown at wait-k's pace
COST, BUYS = "pace alone", "text alone"
LABELS = {COST: "the same text, earlier", BUYS: "at the same pace, its own text"}


def rescheduled(trace: QuestionTrace, k: int) -> QuestionTrace:
    """Return a trace with the same words at wait-k's pace: g(j) = min(k + j - 1, |S|) in every sentence."""
    written: Counter[int] = Counter()
    emissions = []
    for emission in trace.emissions:
        j = written[emission.sentence] = written[emission.sentence] + 1
        length = len(trace.question.sentences[emission.sentence])
        emissions.append(replace(emission, g=min(k + j - 1, length), ended=k + j - 1 > length))
    return replace(trace, emissions=tuple(emissions))


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield, for each translator and k, the metrics of the full-input text at wait-k's pace and the two differences."""
    grid = finished_grid(config_path, runs, lambda cell: cell.contestant == BEST)
    for dataset, family in dict.fromkeys((row.cell.dataset, row.cell.family) for row in grid):
        series = {row.cell.k: row for row in grid if (row.cell.dataset, row.cell.family) == (dataset, family)}
        if "full" in series and len(series) > 2:
            traces = series["full"].run.traces
            for k, metric in product(sorted(series, key=plots.order), metric_names.build(METRICS)):
                at_pace = full = series["full"].stats[metric.name]
                if isinstance(k, int):
                    at_pace = np.stack([metric.stats(rescheduled(trace, k)) for trace in traces])
                own = series[k].stats[metric.name]
                for part, tables in {FULL_TEXT: (at_pace,), COST: (at_pace, full), BUYS: (own, at_pace)}.items():
                    yield measured((dataset, family, str(k), part), metric, *tables)


def figure(ledger: Ledger) -> plots.Figure:
    """Draw two bars (pace, text) for each translator and k, and the sums of the bars as a line."""
    systems = by_system(ledger.where("ew"))
    high = -(-len(systems) // 2)
    drawn_figure, grid = plots.canvas((plots.PAGE, 1.7 * high + 0.5), high, 2, sharey=True)
    for axes in grid.flat[len(systems) :]:
        axes.set_visible(False)
    for axes, (title, rows) in zip(grid.flat, systems.items(), strict=False):
        ks = sorted({row["k"] for row in rows} - {"full"}, key=plots.order)
        by_part = {(row["part"], row["k"]): row for row in rows}
        for index, (side, label) in enumerate(LABELS.items()):
            x = [i + 0.36 * (index - 0.5) for i in range(len(ks))]
            shown = [by_part[side, k] for k in ks]
            arms = [(np.nan, np.nan) if row.low is None else plots.arms(row) for row in shown]
            looks = {"yerr": [*zip(*arms, strict=True)], "alpha": 0.6, "error_kw": {"elinewidth": 0.6, "capsize": 1.2}}
            looks |= {"color": plots.COLOURS[4 + index], "edgecolor": "white", "hatch": "////" * index}
            axes.bar(x, [row.value for row in shown], 0.34, label=label, **looks)
        sums = [sum(by_part[side, k].value for side in LABELS) for k in ks]
        axes.plot(range(len(ks)), sums, color="black", marker="o", linewidth=1, label="both: wait-k minus full input")
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_xticks(range(len(ks)), ks)
        axes.set_title(title, loc="left")
    drawn_figure.supylabel("expected wins minus those of full input", fontsize=8)
    drawn_figure.supxlabel("k (source words read before the first target word)", fontsize=8)
    drawn_figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return drawn_figure


PARTS = [Column("ew", part, sign=True, cell={"part": part}) for part in (COST, BUYS)]
ONLY = {"dataset": ("xqb-es", "xqb-pl"), "k": ("2", "3", "6"), "translator": "language model"}
ITEMS = (
    of_grid(
        "delay-or-text",
        "cost and benefit of waiting: one text at two paces, two texts at one pace",
        columns=COLUMNS,
        measure=measure,
        blocks={"language model": pivot(("dataset", "k"), PARTS, **ONLY)},
        figures={"docs/delay_or_text.png": figure},
    ),
)
