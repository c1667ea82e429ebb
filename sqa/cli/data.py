"""Commands `sqa data` (files of the manifest)."""

from __future__ import annotations

from typing import Annotated

import typer

from sqa.cli.options import SETTINGS, argument, say
from sqa.results import Table, show

data_app = typer.Typer(help="List, download and check data files.", **SETTINGS)

Names = Annotated[list[str] | None, argument("[NAME]...", "Names of files.  Default: all.")]


@data_app.command("list")
def data_list() -> None:
    """List the files of the manifest and whether a local copy exists."""
    from sqa.data import download

    header = ("name", "here", "bytes", "records", "licence", "home")
    rows = [
        (e.name, "yes" if download.where(e.name) else "no", e.size, e.records, e.licence, e.home or e.how or "")
        for e in download.entries()
    ]
    show(Table(header, rows))


@data_app.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Download files from the mirror or their public source.

    The sha256 of each file is checked.
    """
    from sqa.data import download

    wanted = names or [e.name for e in download.entries() if e.home or download.where(e.name)]
    show(Table(("name", "path"), [(name, download.path_of(name)) for name in wanted]))


@data_app.command("verify")
def data_verify(names: Names = None) -> None:
    """Compare every copy with the manifest.

    The exit code is 3 if a file is wrong, or if a named file is missing.
    """
    from sqa.data import download

    statuses = download.verify(names or None)
    show(Table.of(statuses, download.Status))
    bad = [s for s in statuses if s.state == "wrong" or (names and s.state != "ok")]
    say(*(f"{status.name}: {status.message}" for status in bad))
    if bad:
        raise typer.Exit(3)
