"""Command `sqa train curve`: a curve from people's buzzes, as file, table and figure."""

import json
import sys
from pathlib import Path

from sqa import results
from sqa.core.errors import ConfigError
from sqa.files.atomic import write_text
from sqa.metrics.curve_fit import GRID, FitConfig, Fitted, fit, summary
from sqa.metrics.qa import CURVES
from sqa.report.plots import COLOURS, COLUMN, GREY, canvas, save, style

_LINES = ("--", ":")  # line styles of the published curves


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
        axes.set_xlabel("share of the question")
        axes.set_ylabel("expected wins of a right answer")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.05)
        axes.legend(loc="lower left")
        return save(figure, stem.parent, stem.name)
