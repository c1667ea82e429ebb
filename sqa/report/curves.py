"""Curves: of expected wins (`sqa train curve`), and of questions that a listener can answer (`sqa ask --plot`)."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sqa import results
from sqa.core import ConfigError
from sqa.files import write_text
from sqa.metrics.curve_fit import GRID, FitConfig, Fitted, fit, summary
from sqa.metrics.qa import CURVES
from sqa.questions.ask import Asked
from sqa.questions.measures import ALL, curve, kinds_of
from sqa.report.data import run_names
from sqa.report.plots import COLOURS, COLUMN, GREY, PAGE, Line, Panel, canvas, over_k, save, style

_LINES = ("--", ":")  # line styles of the published curves
ACROSS = 3  # panels in a row
TIMES = {"words": np.arange(16.0), "seconds": np.arange(0.0, 12.5, 0.5)}  # the x axis


def main(buzzes: str, output: Path, config: FitConfig) -> None:
    """Fit a curve (`sqa train curve`), write it and its figures (.png, .pdf) beside each other, and print a summary."""
    if not output.name.endswith(".json"):
        raise ConfigError(f"--output: a curve file's name ends in .json, got {output}")
    fitted = fit(buzzes, config)
    write_text(output, json.dumps(fitted.document, indent=1) + "\n")
    paths = draw(fitted, output.with_suffix(""))
    results.show(results.Table(("what", "value"), summary(fitted)))
    for path in (output, *paths):
        print(f"sqa: {path}", file=sys.stderr)


def draw(fitted: Fitted, stem: Path) -> list[Path]:
    """Draw a fit with its points and band, and the published curves; return the PDF and PNG files."""
    with style():
        figure, [[axes]] = canvas((COLUMN, 2.6))
        axes.plot(fitted.x, fitted.y, ".", color=GREY, markersize=1.5, label="buzzes", zorder=1)
        for published, line in zip(CURVES.values(), _LINES, strict=True):
            axes.plot(GRID, published(GRID), line, color=COLOURS[-1], linewidth=1.0, label=published.name)
        axes.plot(GRID, fitted.curve(GRID), color=COLOURS[0], label=fitted.curve.name)
        axes.fill_between(GRID, fitted.low, fitted.high, color=COLOURS[0], alpha=0.25, linewidth=0)
        axes.set(xlabel="share of the question", ylabel="expected wins of a right answer", xlim=(0, 1), ylim=(0, 1.05))
        axes.legend(loc="lower left")
        return save(figure, stem.parent, stem.name)


def draw_answered(systems: Sequence[Asked], path: Path) -> list[Path]:
    """Draw the share of questions a listener can answer over the time since the source word, with 95% bands.

    The first panel is about all questions, and the others are about each kind.  Returns the PDF and PNG files.
    Raises ConfigError if the units of the systems differ.
    """
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
