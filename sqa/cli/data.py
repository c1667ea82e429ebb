"""`sqa data`, the files of the manifest; `sqa store`, what lies in a folder of runs and why it was made again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, RunFolder, Runs, argument, option, say
from sqa.data import download
from sqa.results import Table, show

if TYPE_CHECKING:
    from sqa.report.store_explain import Held

data_app = typer.Typer(help="The data files: what there is, getting it, checking it.", **SETTINGS)
store_app = typer.Typer(help="The store of stages below a folder of runs.", **SETTINGS)

COLUMNS = ("stage", "key", "blocks", "MB", "runs")
REASONS = ("stage", "key", "nearest", "part", "now", "there")
DIGITS = 12  # of a key
Names = Annotated[list[str] | None, argument("[NAME]...", "Files by name; all when none is given.")]


@data_app.command("list")
def data_list() -> None:
    """Every file of the manifest, and whether a copy is here."""
    header = ("name", "here", "bytes", "records", "licence", "home")
    rows = [
        (e.name, "yes" if download.where(e.name) else "no", e.size, e.records, e.licence, e.home or e.how or "")
        for e in download.entries()
    ]
    show(Table(header, rows))


@data_app.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Get files from the mirror or their public home, resuming what was cut off; every byte is checked."""
    wanted = names or [e.name for e in download.entries() if e.home or download.where(e.name)]
    show(Table(("name", "path"), [(name, download.fetch(name)) for name in wanted]))


@data_app.command("verify")
def data_verify(names: Names = None) -> None:
    """Read every copy in full and compare it with the manifest.  Exit 3 on a wrong file, or a missing named one."""
    statuses = download.verify(names or None)
    header = ("name", "state", "path", "message")
    rows = [(status.entry.name, status.state, str(status.path or ""), status.message) for status in statuses]
    show(Table(header, rows))
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


def _table(stages: Iterable[Held]) -> Table:
    rows = [(h.stage, h.key[:DIGITS], h.blocks, h.size / 1e6, " ".join(h.runs) or "none") for h in stages]
    return Table(COLUMNS, rows, {"MB": 1})


@store_app.command("list")
def listing(runs: Runs = DEFAULT_RUNS) -> None:
    """Every stored stage: its key, size, and the runs that use it."""
    from sqa.report.store_explain import holdings

    show(_table(holdings(runs)))


@store_app.command()
def prune(
    runs: Runs = DEFAULT_RUNS,
    yes: Annotated[bool, option("--yes", "Remove them; without it they are listed only.")] = False,
) -> None:
    """Remove the stages that no finished run of the folder uses.  Nothing else may be running there."""
    from sqa.report.store_explain import holdings
    from sqa.report.store_explain import prune as removed

    unused = list(removed(runs)) if yes else [stage for stage in holdings(runs) if not stage.runs]
    show(_table(unused))


@store_app.command()
def explain(run: RunFolder) -> None:
    """Which part of each stage's key differs from the most similar stored stage: why the stage was made again."""
    from sqa.report.store_explain import explain as reasons

    rows = [(r.stage, r.key[:DIGITS], r.nearest[:DIGITS] or "none", r.part, r.now, r.then) for r in reasons(run)]
    show(Table(REASONS, rows))
