"""Commands `sqa init` (a folder to start from), `sqa doctor` (the state of this machine) and `sqa config`."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from sqa import __version__
from sqa.cli.options import SETTINGS, argument
from sqa.core.errors import ConfigError
from sqa.core.packages import requirements, too_new
from sqa.core.paths import CONFIGS, DATA, PACKAGE, ROOT, cache_dir
from sqa.results import Table, show, show_lines

start_app = typer.Typer(**SETTINGS)
config_app = typer.Typer(help="List the keys of configs.", **SETTINGS)

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


@start_app.command()
def init(
    folder: Annotated[
        Path,
        argument("[FOLDER]", "Folder to write; created if it does not exist.", show_default=True, file_okay=False),
    ] = Path(),
) -> None:
    """Write a folder to start from.

    It has a log with its config, and an example of everything that you can bring yourself.
    """
    from sqa.files.atomic import write_text

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
    show(Table(("what", "state", "remark"), [*_machine(), *_data(), *_programs(), *_packages()]))


def _machine() -> Iterator[Row]:
    where = "installed" if PACKAGE / "bundled" == ROOT else "checkout"
    yield "sqa", __version__, f"{where}, {PACKAGE}"
    yield "Python", platform.python_version(), f"{platform.system()} {platform.machine()}, {sys.executable}"
    usable = len(os.sched_getaffinity(0))
    threads = os.environ.get("OMP_NUM_THREADS")
    set_to = f"OMP_NUM_THREADS={threads}" if threads else "set by sqa: 1 for small models, all for large ones"
    yield "processors", str(usable), f"of {os.cpu_count()}; threads {set_to}"
    gpus = sorted(Path("/dev").glob("nvidia[0-9]*"))
    yield "GPU", str(len(gpus)), ", ".join(gpu.name for gpu in gpus) or "none is needed"


def _data() -> Iterator[Row]:
    from sqa.data import download

    entries = download.entries()
    copies = sum(download.where(entry.name) is not None for entry in entries)
    mirror = os.environ.get("SQA_MIRROR")
    remark = "" if mirror is None or Path(mirror).is_dir() else ", which is not a folder"
    models = sum(path.is_dir() for path in (DATA / "models").iterdir())
    yield "bundled", f"{models} models", f"{len(list(CONFIGS.glob('*.yaml')))} configs, 45 questions"
    yield "data files", f"{copies} of {len(entries)}", "sqa data list; sqa data fetch"
    yield "mirror", mirror or "none", f"SQA_MIRROR{remark}"
    cache = cache_dir()
    size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) if cache.is_dir() else 0
    yield "cache", f"{size / 1e6:.0f} MB", str(cache)
    for what, folder in (("disk here", Path.cwd()), ("disk of the cache", cache)):
        existing = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
        yield what, f"{shutil.disk_usage(existing).free / 1e9:.1f} GB free", str(existing)


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
        absent = [f"lacks {name}" for name, below in wanted if not too_new(below) and not _installed(name)]
        yield f"[{extra}]", "no" if absent else "yes", ", ".join(absent) or "all there"


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False
