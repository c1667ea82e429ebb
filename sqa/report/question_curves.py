"""Picture of several systems: the share of questions a listener can answer, over the time since the source word.

The first panel is about all questions, and the others are about each kind.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sqa.core.errors import ConfigError
from sqa.questions.ask import Asked
from sqa.questions.measures import ALL, curve, kinds_of
from sqa.report.data import run_names
from sqa.report.plots import COLUMN, PAGE, Line, Panel, over_k, save, style

ACROSS = 3  # panels in a row
TIMES = {"words": np.arange(16.0), "seconds": np.arange(0.0, 12.5, 0.5)}  # the x axis


def draw(systems: Sequence[Asked], path: Path) -> list[Path]:
    """Draw the curves of systems with 95% bands as PDF and PNG.  Raises ConfigError if their units differ."""
    units = {asked.system.unit for asked in systems}
    if len(units) > 1 or units == {""}:
        raise ConfigError("--plot: needs logs whose delays have one unit; plain texts have no delays")
    times = TIMES[unit := units.pop()].tolist()
    keys = [f"{time:g}" for time in times]
    x = dict(zip(keys, times, strict=True))
    names = run_names([Path(asked.system.name) for asked in systems])
    panels = [
        Panel(
            "all questions" if kind == ALL else kind,
            [
                Line(name, n, dict(zip(keys, curve(asked, times, kind), strict=True)), x)
                for n, (name, asked) in enumerate(zip(names, systems, strict=True))
            ],
            "share of questions answered",
        )
        for kind in kinds_of(systems[0])
    ]
    rows = [panels[start : start + ACROSS] for start in range(0, len(panels), ACROSS)]
    with style():
        size = 2.2, PAGE if len(panels) > 1 else COLUMN
        return save(over_k(rows, f"{unit} after the source word", *size), path.parent, path.stem)
