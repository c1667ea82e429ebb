"""Commands `sqa data` (files of the manifest) and `sqa store` (stored stages of a folder of runs)."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sqa.cli.options import DEFAULT_RUNS, SETTINGS, Runs, argument, option, say
from sqa.core.errors import DataError
from sqa.files.atomic import locked
from sqa.results import Table, show

if TYPE_CHECKING:
    from sqa.pipeline.engine import RunResult

data_app = typer.Typer(help="List, download and check data files.", **SETTINGS)
store_app = typer.Typer(help="List and prune stored stages.", **SETTINGS)

COLUMNS = ("stage", "key", "blocks", "MB", "runs")
DIGITS = 12  # displayed digits of a key
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
    header = ("name", "state", "path", "message")
    rows = [(status.entry.name, status.state, str(status.path or ""), status.message) for status in statuses]
    show(Table(header, rows))
    bad = [s for s in statuses if s.state == "wrong" or (names and s.state != "ok")]
    say(*(f"{status.entry.name}: {status.message}" for status in bad))
    if bad:
        raise typer.Exit(3)


# ------------------------------------------------------------------------------------------------- sqa store


class Held(NamedTuple):
    """A stage's folder in a store."""

    stage: str
    key: str
    blocks: int
    size: int  # bytes
    runs: tuple[str, ...]  # folders of runs that use it
    folder: Path


def holdings(runs: Path) -> list[Held]:
    """Return all stages and question sets in the store of a folder of runs, with the runs that use them.

    Raises DataError if the run.json of a run is damaged.
    """
    from sqa.files.records import parse_json

    users: dict[str, list[str]] = {}
    for path in sorted(runs.glob("*/run.json")):
        try:
            summary = parse_json(path.read_bytes())
            keys = [*summary["stages"].values(), summary["dataset"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: damaged ({error}); run its config again") from error
        for key in keys:
            users.setdefault(key, []).append(path.parent.name)
    stages = []
    for folder in sorted(path for path in (runs / "store").glob("*/*") if path.is_dir()):
        files = [path for path in folder.iterdir() if path.is_file()]
        if files:
            blocks = sum(path.suffix == ".npz" for path in files)
            size, runs_there = sum(path.stat().st_size for path in files), tuple(users.get(folder.name, ()))
            stages.append(Held(folder.parent.name, folder.name, blocks, size, runs_there, folder))
    return stages


def pruned(runs: Path) -> Iterator[Held]:
    """Remove the stages that no finished run of the folder uses; yield each removed stage."""
    for held in holdings(runs):
        if not held.runs:
            with locked(held.folder):
                shutil.rmtree(held.folder)
            yield held


def _table(stages: Iterable[Held]) -> Table:
    rows = [(h.stage, h.key[:DIGITS], h.blocks, h.size / 1e6, " ".join(h.runs) or "none") for h in stages]
    return Table(COLUMNS, rows, {"MB": 1})


@store_app.command("list")
def listing(runs: Runs = DEFAULT_RUNS) -> None:
    """List the stored stages with their keys, sizes and runs."""
    show(_table(holdings(runs)))


@store_app.command()
def prune(
    runs: Runs = DEFAULT_RUNS,
    yes: Annotated[bool, option("--yes", "Remove the stages.  By default they are only listed.")] = False,
) -> None:
    """Remove the stages that no finished run of the folder uses.

    No other command may be running in that folder.
    """
    unused = list(pruned(runs)) if yes else [stage for stage in holdings(runs) if not stage.runs]
    show(_table(unused))


def show_stages(result: RunResult) -> None:
    """Print the stages of a run that ended before its scores."""
    header = ("stage", "questions", "blocks_made", "folder")
    rows = [
        (name, len(result.questions), result.made[name], str(result.store.folder(stage)))
        for name, stage in result.stages.items()
    ]
    show(Table(header, rows))
