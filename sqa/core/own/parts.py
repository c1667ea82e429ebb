"""Wrappers of user-defined parts: they check returned values and include the part's code in its fingerprint.

A contract of a returned value is a type for msgspec, and further checks.  A value that breaks it raises DataError:

    mine.py:build: guess() must return a list of (page, score) for each text; Expected `array`, got `str` - at `$[0]`

The pipeline checks the content of emissions, guesses and buzzes for all parts (sqa/core/trace.py).
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from operator import methodcaller
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, convert, to_builtins

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.own.code import printing_to_stderr
from sqa.core.paths import GIVEN
from sqa.core.types import Buzz, Emission, Floats, Guess, Kind, Write

Line = Annotated[str, Meta(pattern=r"^\S([^\x00-\x1f]*\S)?\Z")]
Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Numbers = Annotated[list[Number], Meta(min_length=1)]
MOST_WORDS = 1000  # words written per source word


@dataclass(frozen=True, slots=True)
class Answer:
    """Contract of a returned value or an attribute."""

    expected: str
    kind: Any  # type of the value
    finish: Callable[..., Any] = lambda value, *_: value  # (value, arguments of the call) -> value; raises ValueError

    def checked(self, where: str, value: Any, *arguments: Any) -> Any:
        """Return the value, converted to the type of the contract.

        `arguments` are those of the call that returned the value.  Raises DataError if the value breaks the contract.
        The message is one line that begins with `where`.
        """
        try:
            plain = to_builtins(value, builtin_types=(bytes,), enc_hook=methodcaller("tolist"))  # for numpy values
            return self.finish(convert(plain, self.kind), *arguments)
        except (AttributeError, ValueError, TypeError, OverflowError) as error:  # msgspec's errors are ValueErrors
            raise DataError(f"{where} {self.expected}; {error}") from error


@contextmanager
def guarded(where: str) -> Iterator[None]:
    """Run user code; raise DataError with its file and line if it ends the program or reads beyond the source."""
    try:
        with printing_to_stderr():
            yield
    except SystemExit as error:
        raise DataError(f"{_line(error)}: {where} a value, but it calls sys.exit(); raise an error instead") from error
    except BaseException as error:
        cause = error.__cause__ if isinstance(error, RuntimeError) else error
        if not isinstance(cause, StopIteration):
            error.add_note(f"in {where.removesuffix(' must return')}")
            raise
        remedy = "the source has ended; use `for word in source` or next(source, None)"
        raise DataError(f"{_line(cause)}: {where} {WORD.expected}, but next() fails: {remedy}") from error


def _line(error: BaseException) -> str:
    """Return "FILE:LINE" of the user code that raised an error."""
    frames = [f for f in extract_tb(error.__traceback__) if f.name != "__next__" and f.filename[0] != "<"]
    frame = frames[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def words(where: str, value: Any, source: Any) -> Iterator[str | Write]:
    """Yield the words that translate() returned, checking each word, at most MOST_WORDS per word read of the source."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Iterator, Sequence)):
        raise DataError(f"{where} {WORD.expected}, got {type(value).__name__}")
    iterator, end = iter(value), object()
    for written in count():
        with guarded(where):
            word = next(iterator, end)
        if word is end:
            return
        if written > MOST_WORDS * max(1, getattr(source, "read", written)):  # a plain iterator has no count
            problem = f"got over {MOST_WORDS} words per source word; does translate() ever end?"
            raise DataError(f"{where} {WORD.expected}, {problem}")
        yield WORD.checked(where, word)


def _one_word(word: str | Write) -> str | Write:
    token = word.token if isinstance(word, Write) else word
    token.encode()  # UnicodeEncodeError for half a surrogate pair
    if token.split() != [token] and not (token == "" and isinstance(word, Write) and word.erase):
        raise ValueError(f"a token must be one word without spaces, got {token[:60]!r}")
    return word


def _pages(rows: list[list[Guess]], *_: Any) -> list[list[Guess]]:
    "".join(guess.page for row in rows for guess in row).encode()
    return rows


WORD = Answer("words one after the other, str or Write(token, erase)", str | Write, _one_word)
LINE = Answer("one line of text without surrounding spaces", Line)
SCORES = Answer(
    "a number for each row", list[float], lambda *rows: np.array([row for row, _ in zip(*rows, strict=True)])
)
# `languages` is checked when it is compared with the questions' languages; the value returned by `check` is ignored.
ATTRIBUTES: Mapping[str, Answer] = {
    **dict.fromkeys(("name", "unit", "label"), LINE),
    "digits": Answer("a number of digits, 0 to 17", Annotated[int, Meta(ge=0, le=17)]),
    "kind": Answer("quality, lag or answers", Kind),
    **dict.fromkeys(("higher_is_better", "oracle"), Answer("true or false", bool)),
    "pages": Answer("the titles of pages, or None", list[str] | None),
    "start": Answer("a number of words, 1 or more", Annotated[int, Meta(ge=1)]),
}
METHODS: Mapping[str, Answer] = {
    "translate_batch": Answer("a list of Emission for each question", list[list[Emission]]),
    "show": Answer("a tuple of words", tuple[str, ...]),
    **dict.fromkeys(
        ("guess", "guess_prefixes", "answer"),
        Answer("a list of (page, score) for each text", list[list[Guess]], _pages),
    ),
    **dict.fromkeys(("decide", "decide_with_answer"), Answer("a Buzz(score, buzz) for each step", list[Buzz])),
    "signature": LINE,
    "fingerprint": Answer("text, or None", str | None),
    "stats": Answer("a list of finite numbers, or raise NotComputable", Numbers, lambda row, *_: np.array(row)),
    "score": Answer("a finite number, or raise NotComputable", Number),
    "score_many": SCORES,
    "measure": Answer(
        "the statistics of each segment",
        list[Numbers],
        lambda *rows: [tuple(row) for row, _ in zip(*rows, strict=True)],
    ),
}
_SCORING = ("name", "unit", "digits", "label", "kind", "higher_is_better", "stats", "score", "score_many")
MEMBERS: Mapping[str, tuple[str, ...]] = {  # kind of part -> attributes and methods that are passed on
    "translator": ("languages", "check", "translate", "translate_batch"),
    "guesser": ("pages", "check_texts", "guess", "guess_prefixes", "answer"),
    "buzzer": ("oracle", "decide", "decide_with_answer"),
    "policy": ("start", "show"),
    "metric": _SCORING,
    "quality metric": (*_SCORING, "measure"),
}


# ------------------------------------------------------------------------------------------------------------- wrappers


class OwnComponent:
    """Wrapper of a user-defined part; it has all methods and attributes in MEMBERS that the part defines."""

    def __init__(self, kind: str, name: str, digest: str, part: Any, config: object) -> None:
        self.own_part, self._kind, self._name, self._digest, self._config = part, kind, name, digest, config
        for member in (each for each in MEMBERS[kind] if hasattr(part, each)):
            value = getattr(part, member)
            if member in ATTRIBUTES:
                value = ATTRIBUTES[member].checked(f"{name}: {member} must be", value)
            setattr(self, member, partial(self._call, member) if callable(value) else value)

    def fingerprint(self) -> str | None:
        """Return the sha256 (hex) of the part's code, config and own fingerprint.

        A quality metric has no fingerprint if its own is None.
        """
        own: str | None = self._call("fingerprint") if hasattr(self.own_part, "fingerprint") else ""
        if own is None and self._kind == "quality metric":
            return None
        if own is None:
            raise DataError(f"{self._name}: fingerprint() must return {LINE.expected}, got None")
        return hashlib.sha256(json.dumps([self._digest, repr(self._config), own]).encode()).hexdigest()

    def __repr__(self) -> str:
        """Return the part's name and fingerprint; a translator's fingerprint contains this text for its policy."""
        return f"{self._name} {self.fingerprint()}"

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the part and check the returned value; a DataError names the method."""
        where = f"{self._name}: {method}() must return"
        if question := getattr(arguments[0], "question", None) if arguments else None:
            where = f"{self._name}: question {getattr(question, 'id', question)}: {method}() must return"
        try:
            with guarded(where):
                value = getattr(self.own_part, method)(*arguments)
        except TypeError as error:
            if extract_tb(error.__traceback__)[-1].name != "_call":
                raise
            code = getattr(getattr(self.own_part, method), "__code__", None)
            at = f"{Path(code.co_filename).name}:{code.co_firstlineno}: " if code else ""
            call = f"{where.removesuffix(' must return')} is called with {len(arguments)} arguments"
            raise DataError(f"{at}{call}; {error}") from error
        if method == "translate":
            return words(where, value, arguments[0])
        return METHODS[method].checked(where, value, *arguments) if method in METHODS else value


class OwnMetric(OwnComponent):
    """A user-defined metric; its signature ends in a digest of its code."""

    score: Callable[[Floats], float]

    def __init__(self, kind: str, name: str, digest: str, part: Any, config: object) -> None:
        needed = (*(each for each in MEMBERS[kind] if each != "score_many"), "signature")
        if lacking := [each for each in needed if not hasattr(part, each)]:
            raise ConfigError(f"{name} returned a {type(part).__name__}, which has no {', '.join(lacking)}")
        super().__init__(kind, name, digest, part, config)
        self._size = 0  # numbers that stats() returned first
        if kind == "metric":
            self.stats = self._stats
        self.score_many = self._score_many if hasattr(part, "score_many") else self._score_each

    def signature(self) -> str:
        """Return the part's own signature and a digest of its code."""
        return f"{self._call('signature')}|source:{self._digest[:16]}"

    def _stats(self, trace: Any) -> Floats:
        """Return the part's statistics of a question; DataError if their number differs from the first question's."""
        row: Floats = self._call("stats", trace)
        self._size = self._size or len(row)
        if len(row) != self._size:
            problem = f"question {trace.question.id}: stats() must return {self._size} numbers as before"
            raise DataError(f"{self._name}: {problem}, got {len(row)}")
        return row

    def _score_many(self, stats: Floats) -> Floats:
        """Return the part's own scores of many sums; DataError if the first one differs from score()."""
        scores: Floats = self._call("score_many", stats)
        if not np.allclose(scores[:1], alone := self._score_each(stats[:1]), rtol=1e-6, equal_nan=True):
            problem = f"got {scores[0]} and {alone[0]} for {stats[0].tolist()}"
            raise DataError(f"{self._name}: score_many() must return the values of score(); {problem}")
        return scores

    def _score_each(self, stats: Floats) -> Floats:
        """Return the scores (B,) of the rows of `stats`, sums of shape (B, d); nan if a score is undefined."""
        scores = np.full(len(stats), np.nan)
        for at, row in enumerate(stats):
            with suppress(NotComputable):
                scores[at] = self.score(row)
        return scores


def component(kind: str, name: str, digest: str, part: Any, config: object) -> Any:
    """Return a user-defined part in the wrapper of its kind; kinds that are not in MEMBERS have no wrapper.

    Warns on stderr about a part without fingerprint(), unless the part was passed to `sqa.run` as an object.
    """
    if kind not in MEMBERS:
        return part
    made = (OwnMetric if "metric" in kind else OwnComponent)(kind, name, digest, part, config)
    if not hasattr(part, "fingerprint") and name not in GIVEN:
        _warn(kind, name, digest)
    return made


@cache
def _warn(kind: str, name: str, _: str) -> None:
    """Warn once per process about a part without fingerprint(), which many runs may build."""
    stored = "store keys cover only its source and config, so add one if it reads files or models"
    print(f"sqa: {kind} {name!r} has no fingerprint(); {stored}", file=sys.stderr)
