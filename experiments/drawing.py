"""Names beside the lines they belong to, instead of a legend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = 7  # points
_LINE = 1.15 * SIZE  # points from one line of text to the next
_APART = 0.3 * SIZE  # points more between two names of several lines, so that it is seen which lines are one name


class End(NamedTuple):
    """Where a line ends."""

    y: float  # data units
    colour: str


def label_ends(axes: Axes, ends: Mapping[str, End]) -> None:
    """Write each name at the right edge of `axes`, at the height of its line's end as far as there is room.

    A name may have several lines.  To be called when the limits of the y axis are final.
    """
    axes.figure.draw_without_rendering()  # so that the height is known
    points = axes.get_window_extent().height / axes.figure.dpi * 72
    low, high = axes.get_ylim()
    heights = {name: (end.y - low) / (high - low) for name, end in ends.items()}
    lines = max(name.count("\n") + 1 for name in ends)
    gap = (_LINE * lines + _APART * (lines > 1)) / points
    for name, height in spread(heights, gap).items():
        axes.text(
            1.02, height, name, color=ends[name].colour, fontsize=SIZE, va="center", transform=axes.transAxes,
            clip_on=False, linespacing=1,
        )  # fmt: skip


def spread(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """Heights (0 to 1) moved apart to at least `gap`, in the same order, as little above 1 or below 0 as may be."""
    names = sorted(heights, key=lambda name: heights[name])
    gap = min(gap, 1 / max(1, len(names) - 1))
    places: dict[str, float] = {}
    for i, name in enumerate(names):
        floor = places[names[i - 1]] + gap if i else 0.0
        places[name] = max(heights[name], floor)
    for i in range(len(names) - 1, -1, -1):
        ceiling = places[names[i + 1]] - gap if i + 1 < len(names) else 1.0
        places[names[i]] = min(places[names[i]], ceiling)
    return places
