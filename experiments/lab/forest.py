"""Pictures of differences or correlations: a panel for each kind, in it a row of dots with intervals for each name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqa.report.figure_style import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments.lab.ledger import Row

MARKERS = ("o", "s", "^")
Dot = tuple[float, "Row", Mapping[str, Any]]  # place from above, value with its interval, look


def look(number: int, label: str | None = None, size: float = 3, width: float = 0.9) -> dict[str, Any]:
    """The look of one kind of dots."""
    colour, marker = COLOURS[number], MARKERS[number]
    return {
        "color": colour,
        "marker": marker,
        "markersize": size,
        "linewidth": width,
        "linestyle": "",
        "label": label,
        "elinewidth": width,
    }


def forest(panels: Mapping[str, Iterable[Dot]], names: Sequence[str], width: float, xlabel: str) -> Figure:
    """One figure; the labels of all looks, where they have some, below."""
    from matplotlib import pyplot

    size = (width, 0.8 + 0.25 * len(names))
    figure, [row] = pyplot.subplots(1, len(panels), figsize=size, layout="constrained", sharey=True, squeeze=False)
    labels: dict[str, Any] = {}
    for axes, (title, dots) in zip(row, panels.items(), strict=True):
        for place, dot, its in dots:
            drawn = axes.errorbar([dot.value], [place], xerr=[[arm] for arm in dot.arms], **its)
            labels |= {its["label"]: drawn} if its["label"] else {}
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_title(title, loc="left")
    row[0].set_yticks(range(len(names)), names)
    row[0].invert_yaxis()
    figure.supxlabel(xlabel, fontsize=8)
    if labels:
        figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=len(labels))
    return figure
