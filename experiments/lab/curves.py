"""Pictures of values over k: a grid of panels, a line with its 95% band (where it has one) for each translator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from experiments.ladders import order
from sqa.report.figure_style import COLOURS, PAGE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from experiments.lab.ledger import Row

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_MARKERS = 8  # of a line, about
BESIDE = 0.12  # of the distance of two k, between lines of a single k


class Line(NamedTuple):
    """A line, or with one k a dot."""

    label: str
    look: int  # place of its colour and marker: the same in every panel
    by_k: Mapping[str, Row]
    human: Row | None = None  # the same of the human translation: a dashed line


class Panel(NamedTuple):
    """One metric."""

    title: str
    lines: Sequence[Line]
    ylabel: str = ""
    lags: Sequence[Mapping[str, Row]] | None = None  # of each line, the lag that each k gives: the x axis


def lines(
    rows: Iterable[Row], name: int, x: int, looks: Sequence[str] = (), label: Callable[[str], str] = str
) -> list[Line]:
    """A line for each value in column `name`, over those in column `x`; `looks`: the names in order of their looks."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.cell[name], {})[row.cell[x]] = row
    order = list(looks or found)
    return [Line(label(one), order.index(one), found[one]) for one in sorted(found, key=order.index)]


def over_k(grid: Sequence[Sequence[Panel]], xlabel: str, height: float = 2.0, width: float = PAGE) -> Figure:
    """A row of panels for each of `grid`; the names of all lines above.  No y axis starts at 0."""
    from matplotlib import pyplot

    shape = (len(grid), max(map(len, grid)))
    size = (width, 0.6 + height * shape[0])
    lag = grid[0][0].lags is not None
    figure, all_axes = pyplot.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    named: dict[str, Artist] = {}
    for axes_row, panels in zip(all_axes, grid, strict=True):
        for axes, panel in zip(axes_row, panels, strict=False):
            ks = sorted({k for line in panel.lines for k in line.by_k}, key=order)
            for place, line in enumerate(panel.lines):
                x = _lags(panel, place) if lag else {k: float(i) for i, k in enumerate(ks)}
                _draw(axes, line, x, 0.0 if lag else BESIDE * (place + 1))
            if not lag:
                axes.set_xticks(range(len(ks)), ks)
            axes.set_title(panel.title, loc="left")
            axes.set_ylabel(panel.ylabel)
            handles, labels = axes.get_legend_handles_labels()
            named |= zip(labels, handles, strict=True)
        for axes in axes_row[len(panels) :]:
            axes.set_visible(False)
    figure.supxlabel(xlabel, fontsize=8)
    figure.legend(list(named.values()), list(named), loc="outside upper center", ncols=4)
    return figure


def _lags(panel: Panel, place: int) -> dict[str, float]:
    return {k: row.value for k, row in (panel.lags or ())[place].items()}


def _draw(axes: Axes, line: Line, x: Mapping[str, float], beside: float) -> None:
    colour, marker = COLOURS[line.look % len(COLOURS)], MARKERS[line.look % len(MARKERS)]
    ks = sorted((k for k in line.by_k if k in x), key=order)
    rows = [line.by_k[k] for k in ks]
    at = [x[k] for k in ks]
    if len(rows) == 1:
        at = [at[0] + beside]
        axes.errorbar(at, [rows[0].value], yerr=[[arm] for arm in rows[0].arms], color=colour, marker=marker,
                      linestyle="", elinewidth=0.8, capsize=1.5, label=line.label)  # fmt: skip
    elif rows:
        ends = [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
        if len(ends) == len(rows):
            axes.fill_between(at, *zip(*ends, strict=True), color=colour, alpha=0.12, linewidth=0)
        every = max(1, len(at) // MOST_MARKERS)
        axes.plot(at, [row.value for row in rows], color=colour, marker=marker, markevery=every, label=line.label)
    if line.human is not None:
        axes.axhline(line.human.value, color=colour, linestyle=":", linewidth=0.9)
