"""User-defined parts, named by their target: `module:attribute` or `path/to/file.py:attribute`.

A file is looked up in the folder of the config that names it, then in the current folder.  It may import other files
of its folder.  A run without user-defined parts imports only this module of the package.  The other modules import
the user's code (`code`), and wrap its parts and check the values that they return (`parts`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The project's packages.  Their version is in every signature, so keys do not include their code.
PACKAGES = frozenset({"sqa", "sqa_services", "smt", "guessers", "buzzers", "experiments"})

BUILT: list[Any] = []  # the `Code` of every user-defined part built by this process, in order
GIVEN: dict[str, Any] = {}  # name -> an object that was passed to `sqa.run` as a part


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A user-defined part inside another part's config: `policy: {name: "mine.py:build", patience: 2}`."""

    name: str  # target of the part
    options: Any  # instance of its build function's config dataclass


def in_file(target: str) -> bool:
    """Return whether a target is in a file (`mine.py:build`), not in an importable module."""
    return target.rpartition(":")[0].endswith(".py")


def is_own(target: str) -> bool:
    """Return whether a target is user-defined, that is, outside the project's packages."""
    return in_file(target) or split(target)[0].partition(".")[0] not in PACKAGES


def split(target: str) -> tuple[str, str]:
    """Split a target into its file or module, and its attribute."""
    return target.rpartition(":")[0], target.rpartition(":")[2]


def located(target: str, folder: Path | None = None) -> str:
    """Return a target with its file's absolute path; unchanged if it is in a module or its file is missing."""
    file, attribute = split(target)
    for path in (start / Path(file).expanduser() for start in (folder or Path(), Path())):
        if in_file(target) and path.is_file():
            return f"{path.resolve()}:{attribute}"
    return target


def short(target: str) -> str:
    """Return a target as shown in store keys and reports: with the name of its file instead of the path."""
    return target if not in_file(target) else f"{Path(split(target)[0]).name}:{split(target)[1]}"
