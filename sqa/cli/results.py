"""`sqa results`: the lab book of the repository, every number, table and picture from a run by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, Runs, call

results_app = typer.Typer(help="The lab book: measured rows, and the pages and pictures made from them.", **SETTINGS)
_MAIN = "experiments.lab.main"
Items = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ITEM]...", help="Items by name, or mine.py:ITEM; all when none is given."),
]


@results_app.command("list")
def listing() -> None:
    """Every item: what it shows, when it was measured, whether it is stale and why."""
    call(f"{_MAIN}:listing")


@results_app.command()
def update(
    names: Items = None,
    runs: Runs = DEFAULT_RUNS,
    force: Annotated[bool, typer.Option("--force", help="Measure what is fresh, too.")] = False,
) -> None:
    """Measure what is stale (another config, model, data set or version), and remake pages and pictures."""
    call(f"{_MAIN}:update", names or (), runs, force)


@results_app.command()
def check(names: Items = None) -> None:
    """Name every stale ledger, and every picture or line of a page that is older or was edited; exit 1 if any."""
    call(f"{_MAIN}:check", names or ())


@results_app.command()
def page(
    output: Annotated[Path, typer.Option("--output", metavar="FILE.html")] = DEFAULT_RUNS / "results.html",
) -> None:
    """All ledgers as one HTML page with sorting and filters, which needs no network."""
    call("experiments.lab.html:main", output)
