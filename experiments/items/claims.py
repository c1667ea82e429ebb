"""The paper's claims over k: a primary family that is tested, everything else as differences with intervals.

Primary (Holm over two tests): the language model, answered by `rerank` under the paper's rule, both languages pooled,
each with the same weight.

    rise   the best k has more expected wins than the smallest k
    fall   the best k has more expected wins than full input

The family was declared after these questions had been looked at: it describes them with a known error rate and
confirms nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.items.over_k import BEST, NAMES
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from experiments.ladders import CLAIMS, COLUMNS, POOLED, differences, ladders, p_of
from sqa.core.permutation import holm
from sqa.report import markdown
from sqa.report.figure_style import COLOURS, PAGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY = "language model"
FAMILY = ("rise", "fall")
ALPHA = 0.05
DRAWN = ("rise", "fall", "oracle rise", "oracle fall")
_PRIMARY = {"marker": "s", "markersize": 5, "color": COLOURS[1], "linewidth": 1.6}
_OTHER = {"marker": "o", "markersize": 3, "color": COLOURS[0], "linewidth": 0.9}


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Differences with intervals, their p-values for the best contestant, and the primary family corrected."""
    primary: list[Row] = []
    for ladder in ladders(grid_rows.finished(config_path, runs)):
        for row in differences(ladder):
            yield row
            if ladder.contestant == BEST and row.cell[3] in CLAIMS:
                p = Row(row.cell, "p", float(p_of(ladder, row.cell[3])[0]))
                yield p
                if (ladder.dataset, ladder.translator) == (POOLED, PRIMARY) and row.cell[3] in FAMILY:
                    primary.append(p)
    for row, corrected in zip(primary, holm([row.value for row in primary]), strict=True):
        yield Row(row.cell, "p after Holm", corrected)


def block(ledger: Ledger) -> list[str]:
    """The primary family."""
    lines = []
    for p in ledger.where("p after Holm"):
        row = ledger.one("ew", **dict(zip(ledger.columns, p.cell, strict=True)))
        verdict = "held" if p.value <= ALPHA else "not held"
        lines.append([*p.cell[3:], number(row, sign=True), _p(p.value), verdict])
    return markdown.table(["claim", "between", "difference in EW", "p (Holm)", "verdict"], lines)


def oracle(ledger: Ledger) -> list[str]:
    """Full input has the worse oracle EW: every translator and data set."""
    lines = []
    for row in ledger.where("oracle-ew", claim="oracle fall", contestant=BEST):
        p = ledger.one("p", **dict(zip(ledger.columns, row.cell, strict=True)))
        name = NAMES.get(row.cell[1], row.cell[1])
        lines.append([row.cell[0], name, row.cell[4], number(row, sign=True), _p(p.value) if p else "n/a"])
    return markdown.table(["data set", "translator", "between", "difference in oracle EW", "p, alone"], lines)


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def forest(ledger: Ledger) -> Figure:
    """Every difference in expected wins with its interval, the primary family marked."""
    from matplotlib import pyplot

    shown = [row for row in ledger.where(contestant=BEST) if row.cell[3] in DRAWN and row.metric in ("ew", "oracle-ew")]
    pairs = list(dict.fromkeys(row.cell[:2] for row in shown))
    size = (PAGE, 0.8 + 0.22 * len(pairs))
    figure, panels = pyplot.subplots(1, len(DRAWN), figsize=size, layout="constrained", sharey=True)
    for axes, kind in zip(panels, DRAWN, strict=True):
        for row in (row for row in shown if row.cell[3] == kind):
            primary = row.cell[:2] == (POOLED, PRIMARY) and kind in FAMILY
            ends = [[arm] for arm in row.arms]
            axes.errorbar([row.value], [pairs.index(row.cell[:2])], xerr=ends, **(_PRIMARY if primary else _OTHER))
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_title(kind, loc="left")
    panels[0].set_yticks(range(len(pairs)), [f"{d.removeprefix('xqb-')}: {NAMES.get(f, f)}" for d, f in pairs])
    panels[0].invert_yaxis()
    figure.supxlabel("expected wins of the best k minus the smallest k (rise), minus full input (fall)", fontsize=8)
    return figure


ITEM = Item(
    name="claims",
    shows="the paper's claims over k: a primary family tested, the rest as differences with intervals",
    config="ablation.yaml",
    columns=COLUMNS,
    measure=measure,
    inputs=grid_rows.inputs,
    blocks={"primary": block, "oracle": oracle},
    figures={"docs/claims.png": forest},
)
