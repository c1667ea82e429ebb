"""Exceptions that the project raises deliberately, and their exit codes.

    SqaError                      exit 1   a check failed
      ConfigError                 exit 2   a config, flag or argument is wrong; lists all problems at once
      DataError                   exit 3   a file is missing, malformed or of the wrong kind
        ChecksumError             exit 3   a file's sha256 or size differs from the manifest
      TraceError                  exit 3   a trace breaks its rules; carries question_id and step
      NotComputable               exit 1   a metric is undefined here; never turned into 0
      RemoteProtocolError         exit 1   the remote program broke the protocol or has ended

A message names the problem, its location, the expected value and the remedy.  It fits on one screen even if it
quotes long or binary text of a file or a program.
"""

from __future__ import annotations

import difflib
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

LONGEST = 4000  # characters of a message
# all control characters and line separators except \t and \n
_UNSEEN = {c: repr(chr(c))[1:-1] for c in (*range(9), *range(11, 32), 127, *range(128, 160), 0x2028, 0x2029)}


def on_a_screen(text: str) -> str:
    """Shorten a message to fit on a screen, and escape its control characters."""
    shown = text.translate(_UNSEEN)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]} [and {len(shown) - LONGEST} more characters]"


class SqaError(Exception):
    """Base class of all errors that the project raises deliberately.

    Args:
        message: The problem, its location, the expected value and the remedy.

    Attributes:
        exit_code: Exit code of the command line.

    Examples:
        >>> isinstance(ConfigError("k: must be >= 1, got 0"), SqaError), ConfigError.exit_code
        (True, 2)
    """

    exit_code = 1

    def __init__(self, message: object) -> None:
        super().__init__(on_a_screen(str(message)))


class ConfigError(SqaError):
    """One or more problems in a config, each with its location, the expected and the given value.

    Args:
        problems: One problem, or several.

    Attributes:
        problems: All problems.

    Examples:
        >>> ConfigError(["k: must be >= 1, got 0", "limt: unknown; did you mean 'limit'?"]).problems[0]
        'k: must be >= 1, got 0'
    """

    exit_code = 2

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class DataError(SqaError):
    """A missing, malformed or unexpected data file.

    Examples:
        >>> print(DataError("questions.jsonl:3: expected a mapping, got a list"))
        questions.jsonl:3: expected a mapping, got a list
    """

    exit_code = 3


class ChecksumError(DataError):
    """A file whose bytes differ from the manifest."""


class TraceError(SqaError):
    """A trace row that breaks the rules of `sqa.core.trace`.

    Args:
        message: The broken rule.
        question_id: Identifier of the question.
        step: Index of the step, from 0; None if the error concerns the whole question.

    Examples:
        >>> print(TraceError("a token must be one word without spaces, got 'a b'", "q1", step=4))
        q1 step 4: a token must be one word without spaces, got 'a b'
    """

    exit_code = 3

    def __init__(self, message: str, question_id: str, step: int | None = None) -> None:
        self.message = message
        self.question_id = question_id
        self.step = step
        where = question_id if step is None else f"{question_id} step {step}"
        super().__init__(f"{where}: {message}")

    def __reduce__(self) -> tuple[type[TraceError], tuple[str, str, int | None]]:
        """Pickle the constructor's arguments instead of the text."""
        return type(self), (self.message, self.question_id, self.step)


class NotComputable(SqaError):
    """A number that is undefined on this input (an empty set, a metric under revision).

    Examples:
        >>> print(NotComputable("mrr: no question ends with a right answer"))
        mrr: no question ends with a right answer
    """


class RemoteProtocolError(SqaError):
    """A remote program broke the protocol or ended; the message quotes its output."""


def in_a_line(error: object) -> str:
    """Return the text of an object, such as an error, with one space for every stretch of white space."""
    return " ".join(str(error).split())


def returns_exit_code(main: Callable[..., None]) -> Callable[..., int]:
    """Wrap a main function so that it returns 0, or prints an SqaError on stderr and returns its exit code."""

    @functools.wraps(main)
    def wrapped(*arguments: Any, **options: Any) -> int:
        try:
            main(*arguments, **options)
        except SqaError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        return 0

    return wrapped


# --------------------------------------------------------------------------------------------- suggestions in messages


def did_you_mean(name: str, names: Iterable[str], cls: type | None = None) -> str:
    """Return ", did you mean 'x'" for the nearest of `names`, "" if none is near, or why `cls` has no such key."""
    if reason := getattr(cls, "ABSENT", {}).get(name):
        return f"; {reason}"
    folded = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return f", did you mean {folded[near[0]]!r}" if near else ""


def misspelt(keys: Iterable[str], names: Iterable[str]) -> str:
    """Return "'idnex', did you mean 'index'" for the first of `keys` near a missing name of `names`, or "".

    Use this function for files of other programs, which may have additional keys.
    """
    present, expected = list(keys), list(names)
    absent_names = {name.lower(): name for name in expected if name not in present}
    for key in present:
        near = [] if key in expected else difflib.get_close_matches(key.lower(), absent_names, n=1, cutoff=0.8)
        if near:
            return f"{key[:60]!r}, did you mean {absent_names[near[0]]!r}"
    return ""
