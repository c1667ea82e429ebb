"""Figures: the style, the files, and the drawings that reports, items of the paper and `sqa.Experiment` share.

    over_k    panels of lines with 95% bands: over k, over a lag, or over the share of the source read
    forest    panels of dots with intervals around a line at 0
    finish    write a figure of a report, with the drawn numbers as CSV beside it

A value may be a row of a ledger or of a report: any object with `value`, `low` and `high`.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqa.core import DataError
from sqa.core import order as order
from sqa.files import write_text
from sqa.files.atomic import atomic
from sqa.results import Table, grouped

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

    from sqa.core import Interval
    from sqa.results import Row

    Point: TypeAlias = Row | Interval  # a value with its interval

# Okabe and Ito's palette without its yellow, which is too light for lines.
GREY = "#7F7F7F"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", GREY, "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MAX_MARKERS = 8  # approximate maximum per line
OFFSET = 0.12  # horizontal shift of lines with a single k, relative to the distance between two values of k
COLUMN = 3.35  # inches, one column of an ACL paper
PAGE = 6.9  # inches, both columns
SMALLEST = 6  # points, size of the smallest letters
SETTINGS: dict[Any, Any] = {  # for every figure: small sans-serif, thin lines, no box
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "sqa",
}


def load() -> None:
    """Import matplotlib, if it is installed, so that the first figure is drawn without delay."""
    with suppress(ImportError):
        import matplotlib.backends.backend_pdf
        import matplotlib.pyplot  # noqa: F401


@contextmanager
def style(settings: Mapping[str, Any] | None = None, to_files: bool = True) -> Iterator[None]:
    """Apply the common style of figures, and further matplotlib settings, inside the context.

    to_files: use a backend that writes files and shows nothing on the screen.
    """
    import matplotlib

    if to_files:
        matplotlib.use("Agg")
    else:
        from matplotlib import pyplot

        pyplot.draw_if_interactive()  # loads Jupyter's backend: its interactive mode would end with the context below
    with matplotlib.rc_context(SETTINGS | dict(settings or {})):
        yield


def canvas(
    size: tuple[float, float],
    rows: int = 1,
    columns: int = 1,
    sharey: bool = False,
    heights: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """Return a figure of `size` (inches) and its axes, an array of shape (rows, columns).

    heights: relative heights of the rows.
    """
    from matplotlib import pyplot

    return pyplot.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, sharey=sharey, height_ratios=heights
    )


def save(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write <stem>.pdf and <stem>.png into `folder` without a date, close the figure, and return both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        path = folder / f"{stem}.{kind}"
        with atomic(path) as partial:
            figure.savefig(partial, format=kind, metadata=metadata)
        figure.set_layout_engine("none")  # the next file keeps the layout
        paths.append(path)
    close(figure)
    return paths


def close(figure: Figure) -> None:
    """Free a figure's memory."""
    from matplotlib import pyplot

    pyplot.close(figure)


# ------------------------------------------------------------------------------------------- lines over k, lag or time


class Line(NamedTuple):
    """A line, or a single point if there is only one k."""

    label: str
    number: int  # index of its colour and marker, the same in every panel
    by_k: Mapping[str, Point]
    x: Mapping[str, float] | None = None  # k -> lag, or share read; None: the x axis is k


class Level(NamedTuple):
    """A horizontal line: the value of a system without k."""

    label: str
    number: int  # index of its colour and marker
    point: Point
    dashes: str = "--"
    band: bool = False  # whether its interval is drawn


class Panel(NamedTuple):
    """A panel for one metric."""

    title: str
    lines: Sequence[Line]
    ylabel: str = ""
    levels: Sequence[Level] = ()


def lines(
    rows: Iterable[Any],
    by: str,
    x: str,
    names: Sequence[str] = (),
    label: Callable[[str], str] = str,
    over: Iterable[Any] | None = None,
    trainings: str | None = None,
) -> list[Line]:
    """Return a line for each value in column `by` of the rows, over the values in column `x`.

    names: names in the order of their colours and markers.  over: the rows of the metric on the x axis, with the
    same cells.  trainings: the column with the number of trainings, which the legend gives if it is above 1.
    """
    by_name, lags = (grouped((row[by], row) for row in of) for of in (rows, over or ()))
    order_of_names = list(names or by_name)
    return [
        Line(
            label(each) + trained({1 if trainings is None else int(row[trainings]) for row in by_name[each]}),
            order_of_names.index(each),
            {row[x]: row for row in by_name[each]},
            x=None if over is None else {row[x]: row.value for row in lags.get(each, ())},
        )
        for each in sorted(by_name, key=order_of_names.index)
    ]


def trained(counts: Iterable[int]) -> str:
    """Return the end of a legend's entry: the number of trainings, or nothing if there is only one."""
    least, most = min(counts), max(counts)
    return "" if most == 1 else f", {most} trainings" if least == most else f", {least} to {most} trainings"


def over_k(
    grid: Sequence[Sequence[Panel]],
    xlabel: str,
    height: float = 2.0,
    width: float = PAGE,
    colours: Sequence[str] = (),
    bars: bool = False,
    ylabel: str = "",
    title: str = "",
) -> Figure:
    """Draw a row of panels for each element of `grid`, below the title and the legend of all lines.

    colours: by number of line; empty: as many distinct ones as there are lines.  bars: draw intervals as bars, and the
    k at each point, instead of bands.
    """
    every = [panel for row in grid for panel in row]
    numbers = [line.number for panel in every for line in panel.lines]
    numbers += [level.number for panel in every for level in panel.levels]
    colours = colours or distinct(1 + max(numbers, default=0))
    figure, all_axes = canvas((width, 0.6 + height * len(grid)), len(grid), max(map(len, grid)))
    named: dict[str, Artist] = {}
    for axes_row, panels in zip(all_axes, grid, strict=True):
        for axes, panel in zip(axes_row, panels, strict=False):
            draw(axes, panel, colours, bars)
            handles, labels = axes.get_legend_handles_labels()
            named |= zip(labels, handles, strict=True)
        for axes in axes_row[len(panels) :]:
            axes.set_visible(False)
    figure.supxlabel(xlabel, fontsize=8)
    if ylabel:
        figure.supylabel(ylabel, fontsize=8)
    above(figure, named, title)
    return figure


def above(figure: Figure, named: Mapping[str, Any], title: str = "") -> None:
    """Add a legend above the panels, with at most five columns, as many as fit the figure's width.

    The entry of a dot with an interval shows only the dot, whose marker distinguishes it in greyscale.
    """
    handles = [handle.lines[0] if hasattr(handle, "has_yerr") else handle for handle in named.values()]
    for columns in range(5 if len(named) == 5 else 4 if len(named) > 3 else 3, 0, -1):
        legend = figure.legend(handles, list(named), loc="outside upper center", ncols=columns, title=title)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def distinct(n: int) -> Sequence[str]:
    """Return colours for n lines, and black: COLOURS if they suffice, else a ramp."""
    return COLOURS if n <= len(COLOURS) else [*ramp(n), COLOURS[-1]]


def ramp(n: int) -> list[str]:
    """Return n colours from dark blue to light green, for lines with an order such as k."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps["viridis"](0.85 * i / max(1, n - 1))) for i in range(n)]


def draw(axes: Axes, panel: Panel, colours: Sequence[str] = COLOURS, bars: bool = False) -> None:
    """Draw a panel over k, or over the lags of its lines."""
    ks = sorted({k for line in panel.lines for k in line.by_k}, key=order)
    for index, line in enumerate(panel.lines):
        x = {k: float(i) for i, k in enumerate(ks)} if line.x is None else line.x
        offset = OFFSET * (index + 1) if line.x is None else 0.0
        _draw(axes, line, x, offset, colours[line.number % len(colours)], bars)
    for level in panel.levels:
        _draw_level(axes, level, colours[level.number % len(colours)])
    if all(line.x is None for line in panel.lines):
        axes.set_xticks(range(len(ks)), ks)
    axes.set_title(panel.title, loc="left")
    axes.set_ylabel(panel.ylabel)


def _draw(axes: Axes, line: Line, x: Mapping[str, float], offset: float, colour: str, bars: bool) -> None:
    marker = MARKERS[line.number % len(MARKERS)]
    ks = sorted((k for k in line.by_k if k in x), key=lambda k: (order(k), x[k]))
    rows, at = [line.by_k[k] for k in ks], [x[k] for k in ks]
    ends = [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
    low, high = [low for low, _ in ends], [high for _, high in ends]
    if len(rows) == 1:
        options: dict[str, Any] = {"linestyle": "", "elinewidth": 0.8, "capsize": 1.5}
        options["yerr"] = [[arm] for arm in arms(rows[0])] if ends else None
        axes.errorbar([at[0] + offset], [rows[0].value], color=colour, marker=marker, label=line.label, **options)
    elif rows:
        if len(ends) == len(rows) and bars:
            axes.vlines(at, low, high, color=colour, alpha=0.35, linewidth=0.8)
            look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": SMALLEST}
            for k, position, row in zip(ks, at, rows, strict=True):
                axes.annotate(k, (position, row.value), xytext=(0, 3.5), color=colour, **look)
        elif len(ends) == len(rows):
            axes.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
        every = max(1, len(at) // MAX_MARKERS)
        axes.plot(at, [row.value for row in rows], color=colour, marker=marker, markevery=every, label=line.label)


def _draw_level(axes: Axes, level: Level, colour: str) -> None:
    """Draw a horizontal line with its marker at the right edge."""
    if level.band and level.point.low is not None and level.point.high is not None:
        axes.axhspan(level.point.low, level.point.high, color=colour, alpha=0.12, linewidth=0)
    look: dict[str, Any] = {"marker": MARKERS[level.number % len(MARKERS)], "markevery": [1], "linewidth": 0.9}
    look |= {"transform": axes.get_yaxis_transform(), "clip_on": False, "linestyle": level.dashes}
    axes.plot([0, 1], [level.point.value] * 2, color=colour, label=level.label, **look)


# ------------------------------------------------------------------------------------------ differences, correlations


def arms(row: Any) -> tuple[float, float]:
    """Return the distances from a row's value to the ends of its interval, or 0 if the value is outside.

    Raises DataError if the row has no interval.
    """
    if row.low is None or row.high is None:
        raise DataError(f"{row}: has no interval")
    return max(0.0, row.value - row.low), max(0.0, row.high - row.value)


class Dot(NamedTuple):
    """A value of a forest plot."""

    y: float  # index of its name, from the top
    row: Any  # row of a ledger: `value`, `low`, `high`
    number: int = 0  # index of its colour and marker
    label: str | None = None  # text in the legend
    size: float = 3  # size of its marker, in points
    width: float = 0.9  # line width of its interval, in points


def forest(panels: Mapping[str, Iterable[Dot]], names: Sequence[str], width: float, xlabel: str) -> Figure:
    """Draw the panels, by title, with a row of dots and intervals for each name, below the legend of the dots."""
    figure, [row] = canvas((width, 0.8 + 0.25 * len(names)), 1, len(panels), sharey=True)
    labels: dict[str, Any] = {}
    for axes, (title, dots) in zip(row, panels.items(), strict=True):
        for dot in dots:
            look: dict[str, Any] = {"color": COLOURS[dot.number], "marker": MARKERS[dot.number], "markersize": dot.size}
            look |= {"linestyle": "", "linewidth": dot.width, "elinewidth": dot.width, "label": dot.label}
            drawn = axes.errorbar([dot.row.value], [dot.y], xerr=[[arm] for arm in arms(dot.row)], **look)
            labels |= {dot.label: drawn} if dot.label else {}
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_title(title, loc="left")
    row[0].set_yticks(range(len(names)), names)
    row[0].invert_yaxis()
    figure.supxlabel(xlabel, fontsize=8)
    if labels:
        above(figure, labels)
    return figure


# --------------------------------------------------------------------------------------------- figures of the report


class Drawn(NamedTuple):
    """A drawn figure of the report."""

    title: str
    caption: str
    files: tuple[Path, ...]  # PDF, PNG, CSV
    svg: str


def finish(draw: Callable[[], Figure], folder: Path, stem: str, title: str, caption: str, table: Table) -> Drawn:
    """Draw a figure and write its files; the SVG has text as outlines."""
    numbers, svg = folder / f"{stem}.csv", io.StringIO()
    write_text(numbers, table.to_csv())
    with warnings.catch_warnings(), style({"text.parse_math": False}):  # a run's name may contain a dollar sign
        # Run names may contain letters that the font lacks; a box in a legend is acceptable.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure = draw()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        files = save(figure, folder, stem)
    return Drawn(title, caption, (*files, numbers), svg.getvalue())
