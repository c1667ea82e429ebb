"""Commands `sqa curve fit` and `sqa curve show`: curves from people's buzzes, as file, table and figure."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sqa import results
from sqa.core.errors import ConfigError
from sqa.files.atomic import write_text
from sqa.metrics.curve_fit import GRID, FitConfig, Fitted, fit, summary
from sqa.metrics.qa import CURVES, AnyCurve, curve_in
from sqa.report.plots import COLOURS, COLUMN, GREY, canvas, save, style

_LINES = ("--", ":")  # line styles of the published curves


def main(buzzes: str, output: Path, config: FitConfig) -> None:
    """Fit a curve (`sqa curve fit`), write it and its figures (.png, .pdf) beside each other, and print a summary."""
    if not output.name.endswith(".json"):
        raise ConfigError(f"--output: a curve file's name ends in .json, got {output}")
    fitted = fit(buzzes, config)
    write_text(output, json.dumps(fitted.document, indent=1) + "\n")
    paths = draw([fitted.curve], output.with_suffix(""), fitted)
    results.show(results.Table(("what", "value"), summary(fitted)))
    for path in (output, *paths):
        print(f"sqa: {path}", file=sys.stderr)


def show(files: Sequence[Path], output: Path | None = None) -> None:
    """Show EW(t) of the published curves and of those in `files` (`sqa curve show`).

    If `output` is given, also draw a figure.
    """
    if output is not None and not output.name:
        raise ConfigError(f"--output: {output}: is a folder; give the name of a file in it")
    curves: list[AnyCurve] = [curve_in(path) for path in files]
    columns = [*CURVES.values(), *curves]
    rows = [(float(t), *(float(curve(t)) for curve in columns)) for t in GRID[::5]]
    results.show(results.Table(("t", *(curve.name for curve in columns)), rows, {"t": 2}))
    if output is not None:
        for path in draw(curves, output.with_suffix("")):
            print(f"sqa: {path}", file=sys.stderr)


def draw(curves: Sequence[AnyCurve], stem: Path, fitted: Fitted | None = None) -> list[Path]:
    """Draw the curves and the published ones, with the points and the band of a fit; return the PDF and PNG files."""
    with style():
        figure, [[axes]] = canvas((COLUMN, 2.6))
        if fitted is not None:
            axes.plot(fitted.x, fitted.y, ".", color=GREY, markersize=1.5, label="buzzes", zorder=1)
        for published, line in zip(CURVES.values(), _LINES, strict=True):
            axes.plot(GRID, published(GRID), line, color=COLOURS[-1], linewidth=1.0, label=published.name)
        for curve, colour in zip(curves, COLOURS, strict=False):
            axes.plot(GRID, curve(GRID), color=colour, label=curve.name)
            if fitted is not None:
                axes.fill_between(GRID, fitted.low, fitted.high, color=colour, alpha=0.25, linewidth=0)
        axes.set_xlabel("share of the question")
        axes.set_ylabel("expected wins of a right answer")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.05)
        axes.legend(loc="lower left")
        return save(figure, stem.parent, stem.name)
