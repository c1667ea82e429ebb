"""Pictures of values over k, over lag or over a share read: panels with a line and its 95% intervals for each system.

A value may be a row of a ledger, or of a report: whatever has `value`, `low` and `high`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqa.report.figure_style import COLOURS, PAGE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_MARKERS = 8  # of a line, about
BESIDE = 0.12  # of the distance of two k, between lines of a single k


class Point(Protocol):
    """A value with its interval, where it has one."""

    @property
    def value(self) -> Any: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class Line(NamedTuple):
    """A line, or with one k a dot."""

    label: str
    look: int  # place of its colour and marker: the same in every panel
    by_k: Mapping[str, Point]
    human: Point | None = None  # the same of the human translation: a dashed line


class Panel(NamedTuple):
    """One metric."""

    title: str
    lines: Sequence[Line]
    ylabel: str = ""
    lags: Sequence[Mapping[str, Point]] | None = None  # of each line, the lag that each k gives: the x axis


def order(k: int | str) -> float:
    """The place of a k, or of a share, among others: full input last."""
    try:
        return float(k)
    except ValueError:
        return float("inf")


def lines(
    rows: Iterable[Any], name: int, x: int, looks: Sequence[str] = (), label: Callable[[str], str] = str
) -> list[Line]:
    """A line of rows for each value in column `name` of their cells, over those in column `x`.

    `looks`: the names in order of their looks.
    """
    found: dict[str, dict[str, Point]] = {}
    for row in rows:
        found.setdefault(row.cell[name], {})[row.cell[x]] = row
    known = list(looks or found)
    return [Line(label(one), known.index(one), found[one]) for one in sorted(found, key=known.index)]


def over_k(
    grid: Sequence[Sequence[Panel]],
    xlabel: str,
    height: float = 2.0,
    width: float = PAGE,
    colours: Sequence[str] = COLOURS,
    bars: bool = False,
) -> Figure:
    """A row of panels for each of `grid`; the names of all lines above.  bars: in place of bands, each with its k."""
    from matplotlib import pyplot

    shape = (len(grid), max(map(len, grid)))
    size = (width, 0.6 + height * shape[0])
    lag = grid[0][0].lags is not None
    figure, all_axes = pyplot.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    named: dict[str, Artist] = {}
    for axes_row, panels in zip(all_axes, grid, strict=True):
        for axes, panel in zip(axes_row, panels, strict=False):
            draw(axes, panel, lag, colours, bars)
            handles, labels = axes.get_legend_handles_labels()
            named |= zip(labels, handles, strict=True)
        for axes in axes_row[len(panels) :]:
            axes.set_visible(False)
    figure.supxlabel(xlabel, fontsize=8)
    figure.legend(list(named.values()), list(named), loc="outside upper center", ncols=4 if len(named) > 3 else 3)
    return figure


def draw(axes: Axes, panel: Panel, lag: bool = False, colours: Sequence[str] = COLOURS, bars: bool = False) -> None:
    """A panel over k, or over the lags that it has."""
    ks = sorted({k for line in panel.lines for k in line.by_k}, key=order)
    for place, line in enumerate(panel.lines):
        lags = panel.lags[place] if panel.lags else {}
        x = {k: row.value for k, row in lags.items()} if lag else {k: float(i) for i, k in enumerate(ks)}
        colour, beside = colours[line.look % len(colours)], 0.0 if lag else BESIDE * (place + 1)
        _draw(axes, line, x, beside, colour, bars)
    if not lag:
        axes.set_xticks(range(len(ks)), ks)
    axes.set_title(panel.title, loc="left")
    axes.set_ylabel(panel.ylabel)


def _draw(axes: Axes, line: Line, x: Mapping[str, float], beside: float, colour: str, bars: bool) -> None:
    marker = MARKERS[line.look % len(MARKERS)]
    ks = sorted((k for k in line.by_k if k in x), key=lambda k: (order(k), x[k]))
    rows, at = [line.by_k[k] for k in ks], [x[k] for k in ks]
    ends = [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
    low, high = [low for low, _ in ends], [high for _, high in ends]
    if len(rows) == 1:
        arms = [[max(0.0, rows[0].value - low[0])], [max(0.0, high[0] - rows[0].value)]] if ends else None
        axes.errorbar(
            [at[0] + beside],
            [rows[0].value],
            yerr=arms,
            color=colour,
            marker=marker,
            linestyle="",
            elinewidth=0.8,
            capsize=1.5,
            label=line.label,
        )
    elif rows:
        if len(ends) == len(rows) and bars:
            axes.vlines(at, low, high, color=colour, alpha=0.35, linewidth=0.8)
            for k, place, row in zip(ks, at, rows, strict=True):
                axes.annotate(
                    k,
                    (place, row.value),
                    xytext=(0, 3.5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=5,
                    color=colour,
                )
        elif len(ends) == len(rows):
            axes.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
        every = max(1, len(at) // MOST_MARKERS)
        axes.plot(at, [row.value for row in rows], color=colour, marker=marker, markevery=every, label=line.label)
    if line.human is not None:
        axes.axhline(line.human.value, color=colour, linestyle=":", linewidth=0.9)
