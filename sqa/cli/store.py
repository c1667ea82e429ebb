"""`sqa store`: what lies in a folder of runs, who uses it, and why something was made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, Json, RunFolder, Runs, print_table

if TYPE_CHECKING:
    from sqa.report.store_explain import Held

store_app = typer.Typer(help="The store of stages below a folder of runs.", **SETTINGS)
COLUMNS = ("stage", "key", "blocks", "MB", "runs")
REASONS = ("stage", "key", "nearest", "part", "now", "there")  # as JSON; as a table:
HEADING = ("stage of the run", "its key", "nearest other key stored", "what differs", "in this run", "in the other")
DIGITS = 12  # of a key


def _cells(held: Held) -> list[str]:
    return [held.stage, held.key[:DIGITS], str(held.blocks), f"{held.size / 1e6:.1f}", " ".join(held.runs) or "none"]


@store_app.command("list")
def listing(runs: Runs = DEFAULT_RUNS, as_json: Json = False) -> None:
    """Every stored stage: its key, size, and the runs that use it."""
    from sqa.report.store_explain import holdings

    print_table(COLUMNS, [_cells(stage) for stage in holdings(runs)], as_json)


@store_app.command()
def prune(
    runs: Runs = DEFAULT_RUNS,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them; without it they are listed only.")] = False,
) -> None:
    """Remove the stages that no finished run of the folder uses.  Nothing else may be running there."""
    from sqa.report.store_explain import holdings
    from sqa.report.store_explain import prune as removed

    unused = list(removed(runs)) if yes else [stage for stage in holdings(runs) if not stage.runs]
    print_table(COLUMNS, [_cells(stage) for stage in unused])


@store_app.command()
def explain(run: RunFolder, as_json: Json = False) -> None:
    """Which part of each stage's key differs from the most similar stored stage: why the stage was made again."""
    from sqa.report.store_explain import explain as reasons

    rows = [[r.stage, r.key[:DIGITS], r.nearest[:DIGITS] or "none", r.part, r.now, r.then] for r in reasons(run)]
    print_table(REASONS if as_json else HEADING, rows, as_json)
