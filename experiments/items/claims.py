"""The paper's claims over k: a primary family that is tested, everything else as differences with intervals.

Primary (Holm over two tests): the language model, answered by `rerank` under the paper's rule, both languages pooled,
each with the same weight.

    rise   the best k has more expected wins than the smallest k
    fall   the best k has more expected wins than full input

Which k is best is chosen on the questions it is tested on, so chance may choose, too: the k of every question change
places at random (sqa/core/permutation.py).  The family was declared after these questions had been looked at: it
describes them with a known error rate and confirms nothing.  All other lines are paired differences at the k found
best; their intervals do not account for that choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.claims import Ladder, Test, above_any
from experiments.grid import Row as GridRow
from experiments.items.over_k import BEST, NAMES, order
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from sqa import metrics as metric_names
from sqa.core.arrays import Floats
from sqa.core.permutation import holm
from sqa.report import markdown
from sqa.report.figure_style import COLOURS, PAGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY, POOLED = "language model", "both"
ALPHA = 0.05
RESAMPLES = 2000
RISE, FALL = "rise", "fall"
CLAIMS = (
    (RISE, "ew"),
    (FALL, "ew"),
    ("oracle rise", "oracle-ew"),
    ("oracle fall", "oracle-ew"),
    ("BLEU grows", "bleu"),
)
COLUMNS = ("dataset", "translator", "claim", "between")
_PRIMARY = {"marker": "s", "markersize": 5, "color": COLOURS[1], "linewidth": 1.6}
_OTHER = {"marker": "o", "markersize": 3, "color": COLOURS[0], "linewidth": 0.9}


class Over(NamedTuple):
    """One translator at every k on one data set, or on several with the same weight each."""

    dataset: str
    translator: str
    ks: tuple[int | str, ...]  # full input last
    parts: tuple[Mapping[str, Floats], ...]  # of each data set: metric -> (n, K, d)

    def table(self, metric: str) -> Floats:
        """(n, K, d) over the questions of all parts; each part has the same sum of weights."""
        return np.concatenate([part[metric] / len(part[metric]) for part in self.parts])


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Differences with intervals, their p-values, and the primary family corrected."""
    tested: list[tuple[tuple[str, ...], float]] = []
    for over in ladders(grid_rows.finished(config_path, runs)):
        for claim, metric in CLAIMS:
            test, best, end = judged(over, claim, metric)
            between = f"k = {over.ks[best]} minus k = {over.ks[end]}"
            cell: tuple[str, ...] = (over.dataset, over.translator, claim, between)
            yield difference(over, cell, metric, best, end)
            yield Row(cell, "p", float(test.p[0]))
            if (over.dataset, over.translator) == (POOLED, PRIMARY) and claim in (RISE, FALL):
                tested.append((cell, float(test.p[0])))
    for (cell, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        yield Row(cell, "p after Holm", p)


def ladders(grid: Sequence[GridRow]) -> list[Over]:
    """Every translator with several k and full input, on each data set and pooled."""
    names = {metric for _, metric in CLAIMS}
    rows: dict[tuple[str, str], dict[int | str, GridRow]] = {}
    for row in grid:
        if row.cell.guesser == BEST and row.cell.family != "reference":
            rows.setdefault((row.cell.dataset, row.cell.family), {})[row.cell.k] = row
    found = []
    for (dataset, family), ladder in rows.items():
        ks = tuple(sorted(ladder, key=order))
        if len(ks) > 3 and ks[-1] == "full":
            tables = {name: np.stack([ladder[k].stats[name] for k in ks], axis=1) for name in names}
            found.append(Over(dataset, family, ks, (tables,)))
    for family in dict.fromkeys(over.translator for over in found):
        parts = [over for over in found if over.translator == family]
        if len(parts) > 1 and len({over.ks for over in parts}) == 1:
            found.append(Over(POOLED, family, parts[0].ks, tuple(over.parts[0] for over in parts)))
    return found


def judged(over: Over, claim: str, metric: str, tables: Floats | None = None) -> tuple[Test, int, int]:
    """(the test, place of the best k, place of the k it is compared with).

    `tables` (n, K, d, R) take the place of the real one: all with the k of each question in another order.
    """
    full = len(over.ks) - 1
    if claim == "BLEU grows":
        some, end = [full], 0
    else:
        end = full if claim.endswith(FALL) else 0
        some = list(range(1, full)) if end == 0 else list(range(full))
    real = over.table(metric)[..., None]
    test = above_any(Ladder(over.ks, {metric: real if tables is None else tables}, alike=tables is not None),
                     metric, some, end)  # fmt: skip
    _, best, _ = test.pairs[0]
    return test, best, end


def difference(over: Over, cell: tuple[str, ...], metric: str, a: int, b: int) -> Row:
    """k at place a minus k at place b: percentile interval, questions drawn within each data set."""
    [built] = metric_names.build([metric])
    rng = np.random.default_rng(0)
    parts = [part[metric] for part in over.parts]
    value, samples = 0.0, np.zeros(RESAMPLES)
    for part in parts:
        n = len(part)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
        value += (built.score(part[:, a].sum(axis=0)) - built.score(part[:, b].sum(axis=0))) / len(parts)
        samples += (built.score_many(weights @ part[:, a]) - built.score_many(weights @ part[:, b])) / len(parts)
    low, high = np.percentile(samples, [2.5, 97.5])
    n = sum(map(len, parts))
    return Row(cell, metric, value, float(low), float(high), n, built.unit, built.signature())


# ------------------------------------------------------------------------------------------- pages and pictures


def block(ledger: Ledger) -> list[str]:
    """The primary family."""
    lines = []
    for p in ledger.where("p after Holm"):
        row = ledger.one("ew", **dict(zip(ledger.columns, p.cell, strict=True)))
        _, _, claim, between = p.cell
        lines.append([claim, between, number(row, sign=True), _p(p.value), "held" if p.value <= ALPHA else "open"])
    return markdown.table(["claim", "between", "difference in EW", "p (Holm)", "verdict"], lines)


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def forest(ledger: Ledger) -> Figure:
    """Every difference in expected wins with its interval, the primary family marked."""
    from matplotlib import pyplot

    shown = [row for row in ledger.rows if row.metric in ("ew", "oracle-ew")]
    kinds = [claim for claim, metric in CLAIMS if metric != "bleu"]
    pairs = list(dict.fromkeys(row.cell[:2] for row in shown))
    size = (PAGE, 0.8 + 0.22 * len(pairs))
    figure, panels = pyplot.subplots(1, len(kinds), figsize=size, layout="constrained", sharey=True)
    for axes, kind in zip(panels, kinds, strict=True):
        for row in (row for row in shown if row.cell[2] == kind):
            primary = row.cell[:2] == (POOLED, PRIMARY) and kind in (RISE, FALL)
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
    blocks={"primary": block},
    figures={"docs/claims.png": forest},
)
