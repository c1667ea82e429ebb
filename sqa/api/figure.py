"""The figure of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

from sqa.report.figure_style import COLOURS, COLUMN, SETTINGS
from sqa.report.lines import MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def over_k(lines: Mapping[str, Mapping[str, tuple[float, float, float]]], label: str) -> Figure:
    """(value, low, high) over k, line by line; k in words, "full" last.  The figure belongs to no window."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    ks = sorted(
        {k for line in lines.values() for k in line}, key=lambda k: (not k.isdigit(), int(k) if k.isdigit() else 0)
    )
    with rc_context(SETTINGS):
        figure = Figure(figsize=(COLUMN, 2.6), layout="constrained")
        axes = figure.subplots()
        for (name, line), colour, marker in zip(lines.items(), cycle(COLOURS), cycle(MARKERS), strict=False):
            x = [ks.index(k) for k in line]
            values, low, high = zip(*line.values(), strict=True)
            axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
            axes.plot(x, values, color=colour, marker=marker, label=name)
        axes.set_xticks(range(len(ks)), ks)
        axes.set_xlabel("k (source words read first)")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        if lines:
            axes.legend()
    return figure
