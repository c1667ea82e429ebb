"""`sqa curve`: expected-wins curves from human buzzes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli.options import SETTINGS, call

curve_app = typer.Typer(help="Expected-wins curves from human buzzes.", **SETTINGS)


@curve_app.command("fit")
def curve_fit(
    buzzes: Annotated[
        str, typer.Argument(metavar="BUZZES", help="human-buzzes, or a .jsonl or .jsonl.zst.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", metavar="FILE.json", help="The curve; figures go beside it.")],
    method: Annotated[
        Literal["cubic", "monotone"], typer.Option("--method", help="As published, or the data, never rising.")
    ] = "cubic",
    beyond_end: Annotated[
        Literal["refuse", "clip"],
        typer.Option("--beyond-end", help="What is done with positions above 1."),
    ] = "refuse",
    resamples: Annotated[int, typer.Option("--resamples", metavar="N", help="Of the band.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the band.")] = 0,
) -> None:
    """Fit an expected-wins curve to people's buzzes; `ew@FILE.json` is then a metric."""
    from sqa.metrics.curve_fit import FitConfig
    from sqa.report import curves as curve_commands

    config = FitConfig(method, beyond_end, resamples, seed)
    curve_commands.main(buzzes, output, config)


@curve_app.command("show")
def curve_show(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", show_default=False)] = None,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE.png", help="Draw them as well.")] = None,
) -> None:
    """EW(t) of the published curves and of the files."""
    call("sqa.report.curves:show", files or (), output)
