"""Parts of your own by their target: `module:attribute` or `path/to/file.py:attribute`.

A file is searched beside the config that names it, then in the current folder; it may import the files beside it.
A run without such parts imports this module alone.  The rest of the package imports your code (`code`), checks what
its methods return (`answers`), and calls them (`parts`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The project's packages.  Their version is in every signature, so their code is no part of a key.
PACKAGES = frozenset({"sqa", "sqa_services", "smt", "guessers", "buzzers", "experiments"})

BUILT: list[Any] = []  # the `Code` of every part of your own that this process has built, in that order
GIVEN: dict[str, Any] = {}  # name -> an object that was passed to `sqa.run` as a part


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A part of your own inside another part's config: `policy: {name: "mine.py:build", patience: 2}`."""

    name: str  # its target
    options: Any  # instance of the dataclass that its build function takes


def in_file(target: str) -> bool:
    """Return whether a target is in a file (`mine.py:build`), not in an importable module."""
    return target.rpartition(":")[0].endswith(".py")


def is_own(target: str) -> bool:
    """Return whether a target is outside the project."""
    return in_file(target) or split(target)[0].partition(".")[0] not in PACKAGES


def split(target: str) -> tuple[str, str]:
    """Return (file or module, attribute)."""
    return target.rpartition(":")[0], target.rpartition(":")[2]


def located(target: str, folder: Path | None = None) -> str:
    """Return a target with its file's absolute path; unchanged if it is in a module or its file is missing."""
    file, attribute = split(target)
    for path in (start / Path(file).expanduser() for start in (folder or Path(), Path())):
        if in_file(target) and path.is_file():
            return f"{path.resolve()}:{attribute}"
    return target


def short(target: str) -> str:
    """Return a target as store keys and reports have it: a file without its folder."""
    return target if not in_file(target) else f"{Path(split(target)[0]).name}:{split(target)[1]}"
