"""Parts of your own by their target: `module:attribute` or `path/to/file.py:attribute`.

A file is searched beside the config that names it, then in the current folder; it may import the files beside it.
This module is all that a run without such parts needs of them.  The rest of the package is imported when a config names
one: its `code`, what its methods may return (`answers`), its methods as the project calls them (`parts`).
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

# the project's, whose version is in every signature; their code is no part of a key
PACKAGES = frozenset({"sqa", "sqa_services", "smt", "guessers", "buzzers", "experiments"})


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A part of your own inside another part's config: `policy: {name: "mine.py:build", patience: 2}`."""

    name: str  # its target
    options: Any  # instance of the dataclass that its build function takes


def in_file(target: str) -> bool:
    """Whether a target is in a file (`mine.py:build`), not in an importable module."""
    return target.rpartition(":")[0].endswith(".py")


def is_own(target: str) -> bool:
    """Whether a target is outside the project."""
    return in_file(target) or split(target)[0].partition(".")[0] not in PACKAGES


def split(target: str) -> tuple[str, str]:
    """(file or module, attribute)."""
    home, _, attribute = target.rpartition(":") if in_file(target) else target.partition(":")
    return home, attribute


def located(target: str, folder: Path | None = None) -> str:
    """A target in a file with the file's absolute path; unchanged: one in a module, and one whose file is missing."""
    if not in_file(target):
        return target
    file, attribute = split(target)
    for start in (folder or Path(), Path()):
        path = start / Path(file).expanduser()
        if path.is_file():
            return f"{path.resolve()}:{attribute}"
    return target


def short(target: str) -> str:
    """A target as store keys and reports have it: a file without its folder."""
    return target if not in_file(target) else f"{Path(split(target)[0]).name}:{split(target)[1]}"


WATCHED: ContextVar[tuple[list[Any], ...]] = ContextVar("watched", default=())
HOMES: WeakKeyDictionary[type, Any] = WeakKeyDictionary()  # class of a config -> the `Code` that defines it


@contextmanager
def watching() -> Iterator[list[Any]]:
    """The `Code` of all parts of your own that are built in this context, those inside other parts too."""
    codes: list[Any] = []
    token = WATCHED.set((*WATCHED.get(), codes))
    try:
        yield codes
    finally:
        WATCHED.reset(token)


def around(cls: type) -> AbstractContextManager[None]:
    """The context in which a config's class is read: its own code, if it is of a part of your own."""
    return HOMES[cls].running() if cls in HOMES else nullcontext()


def own_codes(parts: Iterable[Any]) -> list[Any]:
    """The `Code` of those parts that are your own."""
    return [part.own_code for part in parts if hasattr(part, "own_code")]
