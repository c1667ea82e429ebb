"""How the report's figures are drawn: colours for light and dark pages, and the files of a figure."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqa.files.store import write_text
from sqa.report.figure_style import COLOURS, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ORDERED = ("#440154", "#414487", "#2A788E", "#22A884", "#7AD151", "#B8AE00")  # viridis, its light end darkened
_DARK_ORDERED = ("#B48EDE", "#7FA0F5", "#4FC3D9", "#3FD0A4", "#A6E36B", "#F2E14C")
_DARK = ("#56B4E9", "#FF9A52", "#3FD0A4", "#E79CC6", "#F0E442", "#C3A6FF", "#FFFFFF")
_DARK_PAGE = {
    "text.color": "#E6E9ED",
    "axes.labelcolor": "#E6E9ED",
    "xtick.color": "#E6E9ED",
    "ytick.color": "#E6E9ED",
    "axes.edgecolor": "#A2AAB5",
    "figure.facecolor": "#14171B",
    "axes.facecolor": "#14171B",
    "savefig.facecolor": "#14171B",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of the report."""

    stem: str  # of its files
    title: str
    caption: str
    files: tuple[Path, ...]  # PDF, PNG, CSV
    light: str  # SVG
    dark: str


class Palette(NamedTuple):
    """Colours of one kind of page."""

    settings: Mapping[str, str]  # matplotlib's
    named: Sequence[str]  # for things without an order
    ordered: Sequence[str]  # for things with one


LIGHT = Palette({}, COLOURS, _ORDERED)
DARK = Palette(_DARK_PAGE, _DARK, _DARK_ORDERED)


def finish(
    draw: Callable[[Palette], Figure], folder: Path, stem: str, title: str, caption: str, table: Sequence[Sequence[str]]
) -> Drawn:
    """Draw for both kinds of page and write the files."""
    from matplotlib import rc_context

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    numbers = folder / f"{stem}.csv"
    write_text(numbers, text.getvalue())
    with ExitStack() as stack:
        stack.enter_context(style())
        stack.enter_context(rc_context({"text.parse_math": False}))  # a dollar in a run's name is a dollar
        # names of runs may hold letters that the font lacks: a box in a legend is no failure
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure = draw(LIGHT)
        light = _svg(figure)
        files = save(figure, folder, stem)
        dark = _dark(draw)
    return Drawn(stem, title, caption, (*files, numbers), light, dark)


def _dark(draw: Callable[[Palette], Figure]) -> str:
    from matplotlib import pyplot, rc_context

    settings: dict[Any, Any] = dict(DARK.settings)
    with rc_context(settings):
        figure = draw(DARK)
        text = _svg(figure)
        pyplot.close(figure)
    return text


def _svg(figure: Figure) -> str:
    """The figure as SVG without a date, letters as shapes."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
