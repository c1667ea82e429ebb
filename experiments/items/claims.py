"""The paper's claims: a primary family that is tested, and everything else as differences with intervals.

Primary (Holm over its four tests): the language model, answered by `rerank` under the paper's rule, both languages.

    rise   the best k has more expected wins than the smallest k
    fall   the best k has more expected wins than full input

Which k is best is chosen on the questions it is tested on, so chance may choose, too: the k of every question change
places at random (sqa/core/permutation.py).  The family was declared after these questions had been looked at: it is a
description of them with an error rate, no confirmation.  All other lines are paired differences at the k found best;
their intervals do not account for that choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.claims import Ladder, above_any
from experiments.grid import Row as GridRow
from experiments.items.over_k import BEST, NAMES, order
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from sqa import metrics as metric_names
from sqa.core.arrays import Floats
from sqa.core.permutation import holm
from sqa.core.significance import compare
from sqa.report import markdown
from sqa.report.figure_style import COLOURS, PAGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY = "language model"
ALPHA = 0.05
_PRIMARY = {"marker": "s", "markersize": 5, "color": COLOURS[1], "linewidth": 1.6}
_OTHER = {"marker": "o", "markersize": 3, "color": COLOURS[0], "linewidth": 0.9}
DIFFERENCE = 0.03  # expected wins: what the power is given for
SETS = 1000  # tables behind the rate of false alarms and the power
RISE, FALL = "rise", "fall"
CLAIMS = (  # name, metric, against which end
    (RISE, "ew", 0),
    (FALL, "ew", -1),
    ("oracle rise", "oracle-ew", 0),
    ("oracle fall", "oracle-ew", -1),
)
COLUMNS = ("dataset", "translator", "claim", "between")


def ladders(config_path: Path, runs: Path) -> dict[tuple[str, str], dict[int | str, GridRow]]:
    """(data set, translator) -> k -> its run, of the translators with several k, answered by the best guesser."""
    found: dict[tuple[str, str], dict[int | str, GridRow]] = {}
    for row in grid_rows.finished(config_path, runs):
        if row.cell.guesser == BEST and row.cell.family != "reference":
            found.setdefault((row.cell.dataset, row.cell.family), {})[row.cell.k] = row
    return {key: ladder for key, ladder in found.items() if "full" in ladder and len(ladder) > 3}


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Differences with intervals and p-values; of the primary family also the corrected p and the power."""
    tested: list[tuple[tuple[str, ...], float]] = []
    for (dataset, family), ladder in ladders(config_path, runs).items():
        ks = sorted(ladder, key=order)
        yield _bleu(dataset, family, ladder, ks)
        for claim, metric, end in CLAIMS:
            cell, rows, p = _claim(dataset, family, claim, metric, end, ladder, ks)
            yield from rows
            if family == PRIMARY and claim in (RISE, FALL):
                tested.append((cell, p))
    for (cell, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        yield Row(cell, "p after Holm", p)


def table_of(ladder: Mapping[int | str, GridRow], metric: str, ks: Sequence[int | str]) -> Floats:
    """(n, K, d): a metric's statistics at every k."""
    return np.stack([ladder[k].stats[metric] for k in ks], axis=1)


def _claim(
    dataset: str, family: str, claim: str, metric: str, end: int, ladder: Mapping[int | str, GridRow],
    ks: Sequence[int | str],
) -> tuple[tuple[str, ...], list[Row], float]:  # fmt: skip
    table = table_of(ladder, metric, ks)
    against = range(len(ks))[end]
    others = [place for place in range(len(ks)) if place != against and (claim.endswith(FALL) or ks[place] != "full")]
    test = above_any(Ladder(tuple(ks), {metric: table[..., None]}), metric, others, against)
    _, best, _ = test.pairs[0]
    [built] = metric_names.build([metric])
    gap = compare(table[:, best], table[:, against], built)
    cell = (dataset, family, claim, f"k = {ks[best]} minus k = {ks[against]}")
    rows = [Row(cell, metric, gap.diff, gap.low, gap.high, gap.n, built.unit, built.signature()),
            Row(cell, "p", float(test.p[0]))]  # fmt: skip
    return cell, rows, float(test.p[0])


def _bleu(dataset: str, family: str, ladder: Mapping[int | str, GridRow], ks: Sequence[int | str]) -> Row:
    table = table_of(ladder, "bleu", ks)
    [built] = metric_names.build(["bleu"])
    gap = compare(table[:, -1], table[:, 0], built)
    cell = (dataset, family, "BLEU grows", f"k = {ks[-1]} minus k = {ks[0]}")
    return Row(cell, "bleu", gap.diff, gap.low, gap.high, gap.n, built.unit, built.signature())


def block(ledger: Ledger) -> list[str]:
    """The primary family: four tests."""
    lines = []
    for row in ledger.where("ew", translator=PRIMARY):
        cell = dict(zip(ledger.columns, row.cell, strict=True))
        p = ledger.one("p after Holm", **cell)
        if p is not None:
            verdict = "held" if p.value <= ALPHA else "open"
            lines.append(
                [cell["dataset"], cell["claim"], cell["between"], number(row, sign=True), f"{p.value:.4f}", verdict]
            )
    return markdown.table(["data set", "claim", "between", "difference in EW", "p after Holm", "verdict"], lines)


def forest(ledger: Ledger) -> Figure:
    """Every difference in expected wins with its interval, the primary family in bold."""
    from matplotlib import pyplot

    shown = [row for row in ledger.rows if row.metric in ("ew", "oracle-ew")]
    kinds = [claim for claim, _, _ in CLAIMS]
    pairs = list(dict.fromkeys(row.cell[:2] for row in shown))
    figure, panels = pyplot.subplots(
        1, len(kinds), figsize=(PAGE, 0.7 + 0.24 * len(pairs)), layout="constrained", sharey=True
    )
    for axes, kind in zip(panels, kinds, strict=True):
        for place, pair in enumerate(pairs):
            for row in (row for row in shown if row.cell[:2] == pair and row.cell[2] == kind):
                primary = pair[1] == PRIMARY and kind in (RISE, FALL)
                ends = [[arm] for arm in row.arms]
                look = _PRIMARY if primary else _OTHER
                axes.errorbar([row.value], [place], xerr=ends, **look)
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_title(kind, loc="left")
    panels[0].set_yticks(range(len(pairs)), [f"{d.removeprefix('xqb-')}: {NAMES.get(f, f)}" for d, f in pairs])
    panels[0].invert_yaxis()
    figure.supxlabel(
        "difference in expected wins: best k minus smallest k (rise), minus full input (fall); 95% intervals",
        fontsize=8,
    )
    return figure


ITEM = Item(
    name="claims",
    shows="the paper's claims over k: a primary family tested, the rest as differences with intervals",
    config="ablation.yaml",
    columns=COLUMNS,
    measure=measure,
    inputs=grid_rows.inputs,
    blocks={"primary": block},
    figures={"docs/claims.png": forest},
)
