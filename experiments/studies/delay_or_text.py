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

from experiments.paper.figure3 import BEST, NAMES
from experiments.results_book.item import finished_grid, of_grid
from experiments.results_book.ledger import Ledger, Row, row_of
from experiments.results_book.tables import Column, pivot
from sqa import metrics as metric_names
from sqa.core import QuestionTrace, bootstrap, compare
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
                cell, unit, signature = (dataset, family, str(k)), metric.unit, metric.signature()
                yield row_of((*cell, FULL_TEXT), metric.name, bootstrap(at_pace, metric), unit, signature)
                for name, a, b in ((COST, at_pace, full), (BUYS, series[k].stats[metric.name], at_pace)):
                    yield row_of((*cell, name), metric.name, compare(a, b, metric), unit, signature)


def figure(ledger: Ledger) -> plots.Figure:
    """Draw two bars (pace, text) for each translator and k, and the sums of the bars as a line."""
    pairs = list(dict.fromkeys((row["dataset"], row["translator"]) for row in ledger.rows))
    high = -(-len(pairs) // 2)
    drawn_figure, grid = plots.canvas((plots.PAGE, 1.7 * high + 0.5), high, 2, sharey=True)
    for axes in grid.flat[len(pairs) :]:
        axes.set_visible(False)
    for axes, (dataset, family) in zip(grid.flat, pairs, strict=False):
        where = {"dataset": dataset, "translator": family}
        ks = sorted({row["k"] for row in ledger.where("ew", **where)} - {"full"}, key=plots.order)
        sides = {side: [ledger.one("ew", **where, k=k, part=side) for k in ks] for side in LABELS}
        for index, (side, label) in enumerate(LABELS.items()):
            x = [i + 0.36 * (index - 0.5) for i in range(len(ks))]
            values = [row.value for row in sides[side]]
            arms = [(np.nan, np.nan) if row.low is None else plots.arms(row) for row in sides[side]]
            looks = {"yerr": [*zip(*arms, strict=True)], "alpha": 0.6, "error_kw": {"elinewidth": 0.6, "capsize": 1.2}}
            looks |= {"color": plots.COLOURS[4 + index], "edgecolor": "white", "hatch": "////" * index}
            axes.bar(x, values, 0.34, label=label, **looks)
        sums = [a.value + b.value for a, b in zip(*sides.values(), strict=True)]
        axes.plot(range(len(ks)), sums, color="black", marker="o", linewidth=1, label="both: wait-k minus full input")
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_xticks(range(len(ks)), ks)
        axes.set_title(f"{dataset.removeprefix('xqb-')}: {NAMES.get(family, family)}", loc="left")
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
