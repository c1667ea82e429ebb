"""Commands `sqa init` (a folder to start from), `sqa doctor` (the state of this machine), `sqa config`, `sqa data`."""

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated

import typer

from sqa import __version__
from sqa.cli.options import SETTINGS, argument, say
from sqa.core import ROOT, ConfigError, cache_dir
from sqa.core.packages import requirements, too_new
from sqa.core.paths import PACKAGE
from sqa.results import Table, show, show_lines

start_app = typer.Typer(**SETTINGS)
config_app = typer.Typer(help="List the keys of configs, or print their JSON Schema.", **SETTINGS)
data_app = typer.Typer(help="List, download and check data files.", **SETTINGS)

Names = Annotated[list[str] | None, argument("[NAME]...", "Names of files.  Default: all.")]

PROGRAMS = {"apertium": "a translator of the ablation", "java": "METEOR, SPICE", "chromium": "tests of pages"}
# commands in the files of `sqa init`
COMMAND = re.compile(r"   (sqa .*?)(?:\"\"\")?$", re.MULTILINE)
Row = tuple[str, str, str]


@config_app.command("keys")
def config_keys(
    kind: Annotated[str, argument("KIND", "translator, policy, guesser, buzzer or quality.")],
    name: Annotated[str, argument("NAME", "Name as under `name:`, such as waitk or mine.py:build.")],
) -> None:
    """List the keys of a component with type, default and meaning."""
    from sqa.cli.config_keys import keys_of

    show(Table(("key", "type", "default", "meaning"), keys_of(kind, name)))


@config_app.command("schema")
def config_schema() -> None:
    """Print the JSON Schema of a run's config, for editors."""
    from sqa.cli.config_keys import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))


@start_app.command()
def init(
    folder: Annotated[
        Path, argument("[FOLDER]", "Folder to write; created if it does not exist.", show_default=True, file_okay=False)
    ] = Path(),
) -> None:
    """Write a folder to start from.

    It has a log with its config, and an example of everything that you can bring yourself.
    """
    from sqa.files import write_text

    sources = sorted(path for path in (ROOT / "docs" / "example").iterdir() if path.is_file())
    existing = [str(folder / source.name) for source in sources if (folder / source.name).exists()]
    if existing:
        raise ConfigError(f"{', '.join(existing)}: already exists; give another folder")
    commands = ["sqa run mine.yaml"]
    for source in sources:
        text = source.read_text(encoding="utf-8")
        write_text(folder / source.name, text.replace("docs/example/", "") if source.suffix == ".yaml" else text)
        commands += COMMAND.findall(text)
    # printed after all files are written, because printing fails if the program that reads the output has ended
    show_lines(*(folder / source.name for source in sources))
    print(f"sqa: now cd {folder}, where each of these runs:", *commands, sep="\n    ", file=sys.stderr)


@start_app.command()
def doctor() -> None:
    """Show what is installed and what is missing."""
    show(Table(("what", "state", "remark"), [*_program(), *_programs(), *_packages()]))


def _program() -> Iterator[Row]:
    """Yield the versions of SQA and Python, and the data files that have a local copy."""
    from sqa.data import download

    where = "installed" if PACKAGE / "bundled" == ROOT else "checkout"
    yield "sqa", __version__, f"{where}, {PACKAGE}"
    yield "Python", platform.python_version(), f"{platform.system()} {platform.machine()}, {sys.executable}"
    entries = download.entries()
    copies = sum(download.where(entry.name) is not None for entry in entries)
    yield "data files", f"{copies} of {len(entries)}", "sqa data list; sqa data fetch"
    yield "mirror", os.environ.get("SQA_MIRROR", "none"), "SQA_MIRROR"
    yield "cache", str(cache_dir()), "SQA_CACHE"


def _programs() -> Iterator[Row]:
    for name, purpose in PROGRAMS.items():
        path = shutil.which(name)
        yield name, "yes" if path else "no", path or f"for {purpose}"


def _packages() -> Iterator[Row]:
    """Yield each extra with its missing packages, according to the installed metadata."""
    extras = requirements()
    if not extras:
        yield "packages", "n/a", "sqa runs from a folder that is not installed; see pyproject.toml"
    for extra, wanted in sorted(extras.items()):
        needed = [name for name, below in wanted if not too_new(below)]
        absent = [f"lacks {name}" for name in needed if not any(distributions(name=name))]
        yield f"[{extra}]", "no" if absent else "yes", ", ".join(absent) or "all there"


# ------------------------------------------------------------------------------------------------ data files


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
