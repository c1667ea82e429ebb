"""`sqa data`: the files of the manifest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sqa.cli.options import SETTINGS, Json, print_table
from sqa.data import download

data_app = typer.Typer(help="The data files: what there is, getting it, checking it.", **SETTINGS)

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Files by name; all when none is given.")]


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
    for status in bad:
        print(f"sqa: {status.entry.name}: {status.message}", file=sys.stderr)
    if bad:
        raise typer.Exit(3)


@data_app.command("listen")
def data_listen(
    form: Annotated[str, typer.Argument(metavar="FORM", help="askqe, treqa or mcif.", show_default=False)],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Its files.", show_default=False)],
    language: Annotated[str, typer.Option("--language", metavar="CODE", help="Of the source.")] = "",
) -> None:
    """Questions of others as questions to a listener (docs/own_data.md), JSON Lines on stdout."""
    from sqa.data.listening import listen

    listen(form, files, language)
