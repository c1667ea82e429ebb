"""Contents of a figure as text, independent of fonts and versions, by which tests compare figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def contents(figure: Figure) -> list[str]:
    """Return one line per drawn element, in order: titles, limits, lines, areas, bars, words, legends."""
    lines = [f"figure {_numbers(figure.get_size_inches())}", *_words(figure.texts)]
    for axes in figure.axes:
        lines += _axes(axes)
    for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes)):
        if legend:
            lines += [f"legend {text.get_text()}" for text in legend.get_texts()]
    return lines


def _axes(axes: Axes) -> Iterator[str]:
    titles = "|".join(axes.get_title(loc) for loc in ("left", "center", "right"))
    shown = "" if axes.get_visible() and axes.axison else "hidden "
    yield f"{shown}axes {titles} x {axes.get_xlabel()} {axes.get_xscale()} y {axes.get_ylabel()} {axes.get_yscale()}"
    yield f"limits {_numbers([*axes.get_xlim(), *axes.get_ylim()])}"
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if isinstance(axis.get_major_locator(), FixedLocator):  # other locators depend on the font size
            yield f"{name} ticks {_numbers(axis.get_ticklocs())} {[text.get_text() for text in axis.get_ticklabels()]}"
    for line in axes.lines:
        style = f"{line.get_color()} {line.get_linestyle()} {line.get_marker()} {line.get_drawstyle()}"
        markers = f"{line.get_markersize():.4g} every {line.get_markevery()}"
        label = "" if str(line.get_label()).startswith("_") else line.get_label()
        yield f"line {label} {style} {line.get_linewidth():.4g} {markers} {_numbers(line.get_xydata())}"
    for area in axes.collections:
        points = [_numbers(path.vertices) for path in area.get_paths()]
        yield f"area {_numbers(area.get_facecolor())} {_numbers(np.ma.getdata(area.get_offsets()))} {points}"
    for patch in axes.patches:
        corners = patch.get_transform().transform_path(patch.get_path()).vertices
        hatch = f" {patch.get_hatch()}" if patch.get_hatch() else ""
        yield f"patch {_numbers(patch.get_facecolor())}{hatch} {_numbers(axes.transData.inverted().transform(corners))}"
    for image in axes.images:
        yield f"image {_numbers(image.get_array())}"
    yield from _words(axes.texts)


def _words(texts: Iterable[Any]) -> Iterator[str]:
    for text in texts:
        where = text.xy if hasattr(text, "xy") else text.get_position()
        yield f"text {text.get_text()} {text.get_color()} {text.get_fontweight()} {_numbers(where)}"


def _numbers(values: Any) -> str:
    flat = np.asarray(values, dtype=float).ravel().round(9) + 0.0  # no -0, and no rounding residue in place of 0
    return " ".join(f"{value:.5g}" for value in flat)
