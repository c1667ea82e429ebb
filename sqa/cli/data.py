"""`sqa data`, the files of the manifest; `sqa store`, what lies in a folder of runs and why it was made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, Json, RunFolder, Runs, argument, option, print_table, say
from sqa.data import download

if TYPE_CHECKING:
    from sqa.report.store_explain import Held

data_app = typer.Typer(help="The data files: what there is, getting it, checking it.", **SETTINGS)
store_app = typer.Typer(help="The store of stages below a folder of runs.", **SETTINGS)

COLUMNS = ("stage", "key", "blocks", "MB", "runs")
REASONS = ("stage", "key", "nearest", "part", "now", "there")  # as JSON; as a table:
HEADING = ("stage of the run", "its key", "nearest other key stored", "what differs", "in this run", "in the other")
DIGITS = 12  # of a key
Names = Annotated[list[str] | None, argument("[NAME]...", "Files by name; all when none is given.")]


@data_app.command("list")
def data_list(as_json: Json = False) -> None:
    """Every file of the manifest, and whether a copy is here."""
    header = ("name", "here", "bytes", "records", "licence", "home")
    rows = [
        (e.name, "yes" if download.where(e.name) else "no", e.size, e.records, e.licence, e.home or e.how or "")
        for e in download.entries()
    ]
    print_table(header, rows, as_json)


@data_app.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Get files from the mirror or their public home, resuming what was cut off; every byte is checked."""
    for i, name in enumerate(names or [e.name for e in download.entries() if e.home or download.where(e.name)]):
        path = download.fetch(name)
        print(("" if i else "name\tpath\n") + f"{name}\t{path}", flush=True)


@data_app.command("verify")
def data_verify(names: Names = None, as_json: Json = False) -> None:
    """Read every copy in full and compare it with the manifest.  Exit 3 on a wrong file, or a missing named one."""
    statuses = download.verify(names or None)
    header = ("name", "state", "path", "message")
    rows = [(status.entry.name, status.state, str(status.path or ""), status.message) for status in statuses]
    print_table(header, rows, as_json)
    bad = [s for s in statuses if s.state == "wrong" or (names and s.state != "ok")]
    say(*(f"{status.entry.name}: {status.message}" for status in bad))
    if bad:
        raise typer.Exit(3)


@data_app.command("listen")
def data_listen(
    form: Annotated[str, argument("FORM", "askqe, treqa or mcif.")],
    files: Annotated[list[Path], argument("FILE...", "Its files.")],
    language: Annotated[str, option("--language CODE", "Of the source.")] = "",
) -> None:
    """Questions of others as questions to a listener (docs/own_data.md), JSON Lines on stdout."""
    from sqa.data.listening import listen

    listen(form, files, language)


# ------------------------------------------------------------------------------------------------- sqa store


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
    yes: Annotated[bool, option("--yes", "Remove them; without it they are listed only.")] = False,
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
