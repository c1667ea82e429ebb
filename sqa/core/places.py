"""Parts of your own, by their place: `module:attribute` or `path/to/file.py:attribute`.

A file is looked for beside the config that names it, then in the current folder; it may import the files beside it.
What a run without such parts needs of them is here; the rest of this package is imported when a config names one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

# the project's, which versions itself
PACKAGES = frozenset({"sqa", "sqa_services", "smt", "guessers", "buzzers", "experiments"})


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A part of your own inside another part's config: `policy: {name: "mine.py:build", patience: 2}`."""

    name: str  # its place
    options: Any  # instance of the dataclass that its build function takes


def in_file(place: str) -> bool:
    """Whether a place is in a file (`mine.py:build`), not in an importable module."""
    return place.rpartition(":")[0].endswith(".py")


def is_own(place: str) -> bool:
    """Whether a place is none of the project's."""
    return in_file(place) or split(place)[0].partition(".")[0] not in PACKAGES


def split(place: str) -> tuple[str, str]:
    """(file or module, attribute) of a place."""
    home, _, attribute = place.rpartition(":") if in_file(place) else place.partition(":")
    return home, attribute


def located(place: str, folder: Path | None = None) -> str:
    """A place in a file with the file's whole path; any other place, and one that is not there, as it stands."""
    if not in_file(place):
        return place
    file, attribute = split(place)
    starts = (Path(), folder)[::-1] if folder is not None else (Path(),)
    found = (path.resolve() for path in (start / Path(file).expanduser() for start in starts) if path.is_file())
    return next((f"{path}:{attribute}" for path in found), place)


def short(place: str) -> str:
    """A place as store keys and reports have it: a file without its folder."""
    return place if not in_file(place) else f"{Path(split(place)[0]).name}:{split(place)[1]}"


WATCHED: ContextVar[tuple[list[Any], ...]] = ContextVar("watched", default=())
HOMES: WeakKeyDictionary[type, Any] = WeakKeyDictionary()  # class of a config -> the `Code` it is at home in


@contextmanager
def watching() -> Iterator[list[Any]]:
    """The `Code` of all parts of your own that are made in this context, those inside other parts too."""
    codes: list[Any] = []
    token = WATCHED.set((*WATCHED.get(), codes))
    try:
        yield codes
    finally:
        WATCHED.reset(token)


def around(cls: type) -> AbstractContextManager[None]:
    """What a config's class is read in."""
    return HOMES[cls].running() if cls in HOMES else nullcontext()


def own_codes(parts: Iterable[Any]) -> list[Any]:
    """The `Code` of those parts that are one's own."""
    return [part.own_code for part in parts if hasattr(part, "own_code")]
