"""Every error the project raises on purpose, with the exit code the command line gives it.

    SqaError                      exit 1   a check failed
      ConfigError                 exit 2   a config, flag or argument is wrong; lists all problems at once
      DataError                   exit 3   a file is missing, malformed or of the wrong kind
        ChecksumError             exit 3   a file's sha256 or size differs from the manifest
      TraceError                  exit 3   a trace breaks its rules; carries question_id and step
      NotComputable               exit 1   a metric is undefined here; never turned into 0
      RemoteProtocolError         exit 1   the program at the other end broke the protocol or is gone

A message says what is wrong, where, what was expected and what to do, within a screen, even where it quotes long or
binary text of a file or a program.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

P = ParamSpec("P")
T = TypeVar("T")
LONGEST = 1200  # characters of a line of a message
MOST = 40  # lines
_HEAD, _TAIL = 800, 300  # characters kept of a longer line
# not \t\n
_UNSEEN = {c: repr(chr(c))[1:-1] for c in (*range(9), *range(11, 32), 127, *range(128, 160), 0x2028, 0x2029)}


def on_a_screen(text: str) -> str:
    """A message with long lines cut in their middle, many lines at their end, and control characters written out."""
    lines = text.translate(_UNSEEN).split("\n")
    if len(lines) > MOST:
        lines[MOST - 1 :] = [f"and {len(lines) - MOST + 1} more lines"]
    return "\n".join(
        f"{line[:_HEAD]} [{len(line) - _HEAD - _TAIL} characters left out] {line[-_TAIL:]}"
        if len(line) > LONGEST
        else line
        for line in lines
    )


class SqaError(Exception):
    """Base of all deliberate errors. `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, message: object) -> None:
        super().__init__(on_a_screen(str(message)))


class ConfigError(SqaError):
    """One or more problems in a config, each "where: what was expected, what was got"."""

    exit_code = 2

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class DataError(SqaError):
    """A data file is missing, malformed or not what was expected."""

    exit_code = 3


class ChecksumError(DataError):
    """A file's bytes are not those the manifest names."""


class TraceError(SqaError):
    """A trace row breaks the rules of `sqa.core.trace`."""

    exit_code = 3

    def __init__(self, message: str, question_id: str, step: int | None = None) -> None:
        self.message = message
        self.question_id = question_id
        self.step = step
        where = question_id if step is None else f"{question_id} step {step}"
        super().__init__(f"{where}: {message}")

    def __reduce__(self) -> tuple[type[TraceError], tuple[str, str, int | None]]:
        """Between processes: an exception is made anew from what its class takes, not from its text."""
        return type(self), (self.message, self.question_id, self.step)


class NotComputable(SqaError):
    """A number is undefined on this input (an empty set, a metric under revision)."""


class RemoteProtocolError(SqaError):
    """The program at the other end broke the protocol or is gone; the message quotes its answer."""


def returns_exit_code(main: Callable[P, None]) -> Callable[P, int]:
    """Decorates what `python -m MODULE` calls: 0, or for a deliberate error its exit code and its text on stderr."""

    @functools.wraps(main)
    def wrapped(*arguments: P.args, **options: P.kwargs) -> int:
        try:
            main(*arguments, **options)
        except SqaError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        return 0

    return wrapped


# --------------------------------------------------------------------------------------------- numbers of a config


@dataclass(frozen=True, slots=True)
class Bound:
    """Which numbers a key of a config takes: `Annotated[int, Bound(1)]`.  No NaN, no infinity."""

    least: float
    most: float = math.inf
    above: bool = False  # `least` itself is not taken
    below: bool = False  # `most` itself is not taken

    def takes(self, value: float) -> bool:
        low = value > self.least if self.above else value >= self.least
        return low and math.isfinite(value) and (value < self.most if self.below else value <= self.most)

    def __str__(self) -> str:
        if self.most == math.inf:
            return f"{'>' if self.above else '>='} {self.least}"
        return f"in {'(' if self.above else '['}{self.least}, {self.most}{')' if self.below else ']'}"


Count = Annotated[int, Bound(1)]
Whole = Annotated[int, Bound(0)]
Positive = Annotated[float, Bound(0, above=True)]
NotNegative = Annotated[float, Bound(0)]
Share = Annotated[float, Bound(0, 1)]
BelowOne = Annotated[float, Bound(0, 1, below=True)]


def checked(cls: type[T]) -> type[T]:
    """A config's dataclass (stands below `@dataclass`) whose instances keep the bounds of their fields.

    ConfigError lists all that do not, "batch: must be >= 1, got 0", and what the class's own `problems` finds.
    """

    def check(self: object) -> None:
        wrong = [
            f"{key}: must be {bound}{' or null' * optional}, got {value}"
            for key, (bound, optional) in bounds(type(self)).items()  # type: ignore[arg-type]  # a class is hashable
            if (value := getattr(self, key)) is not None and not bound.takes(value)
        ]
        try:
            wrong += getattr(self, "problems", list)()
        except ConfigError as error:  # of a part of it
            wrong += error.problems
        if wrong:
            raise ConfigError(wrong)

    cls.__post_init__ = check  # type: ignore[attr-defined]
    return cls


@functools.cache
def bounds(cls: type) -> dict[str, tuple[Bound, bool]]:
    """The keys of a config class that have a `Bound`, and whether they may be null."""
    by_key = {}
    for key, hint in get_type_hints(cls, include_extras=True).items():
        members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        for bound in (extra for member in members for extra in getattr(member, "__metadata__", ())):
            if isinstance(bound, Bound):
                by_key[key] = bound, type(None) in members
    return by_key
