"""Contracts of what the methods and attributes of own parts return: a type for msgspec, and a check beyond it.

mine.py:build: guess() must return a list of (page, score) for each text; Expected `array`, got `str` - at `$[0]`
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, convert

from sqa.core.errors import DataError, TraceError
from sqa.core.trace import check_emissions, wrong_guesses
from sqa.core.types import Buzz, Emission, Guess, Kind, Question, Write

_HALF = r"\ud800-\udfff"  # halves of characters, which cannot be encoded
_UNSEEN = rf"\x00-\x1f\x7f-\x9f\u2028\u2029{_HALF}"  # and control characters
Text = Annotated[str, Meta(pattern=rf"^[^{_HALF}]*\Z")]
Line = Annotated[str, Meta(pattern=rf"^[^\s{_UNSEEN}]([^{_UNSEEN}]*[^\s{_UNSEEN}])?\Z")]
Word = Annotated[str, Meta(pattern=rf"^[^\s{_HALF}]+\Z")]
Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Count = Annotated[int, Meta(ge=0)]
Numbers = Annotated[list[Number], Meta(min_length=1)]
Pairs = list[tuple[Text, Number]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The contract of a returned value or an attribute."""

    expected: str
    kind: Any  # its type
    finish: Callable[..., Any] = lambda value, *_: value  # (value, arguments of the call) -> value; raises ValueError

    def checked(self, where: str, value: Any, *arguments: Any) -> Any:
        """Return a value in its plain type.  Raises DataError, one line that begins with `where`, for any other."""
        if self.kind is Any:
            return value
        try:
            return self.finish(convert(_plain(value), self.kind), *arguments)
        except (ValueError, OverflowError, TraceError) as error:  # msgspec's are ValueErrors
            raise DataError(f"{where} {self.expected}; {error}") from error


def _plain(value: Any) -> Any:
    """Return a value without the types of numpy and the project's own classes."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        raise ValueError("a set has no order")
    if isinstance(value, (Buzz, Emission, Question)):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


def _one_each(rows: list[Any], wanted: Sequence[Any], *_: Any) -> list[Any]:
    if len(rows) != len(wanted):
        raise ValueError(f"got {len(rows)} for {len(wanted)}")
    return rows


def _guesses(rows: list[Pairs], texts: Sequence[str], n: int) -> list[list[Guess]]:
    guesses = [[Guess(page, score) for page, score in row] for row in _one_each(rows, texts)]
    for at, row in enumerate(guesses, 1):
        if wrong := wrong_guesses(row, n):
            raise ValueError(f"text {at}: {wrong}")
    return guesses


def _buzzes(buzzes: list[Buzz], history: Sequence[Any], *_: Any) -> list[Buzz]:
    if not all(math.isfinite(buzz.score) for buzz in _one_each(buzzes, history)):
        raise ValueError("a score must be finite")
    return buzzes


def _emissions(rows: list[list[Emission]], questions: Sequence[Question]) -> list[list[Emission]]:
    for question, row in zip(questions, _one_each(rows, questions), strict=True):
        check_emissions(question, row)
    return rows


def _copy(copy: Question, given: Question, *_: Any) -> Question:
    if (copy.page, copy.language) != (given.page, given.language):
        raise ValueError("its page and language must be those of the question that was given")
    convert([copy.sentences, copy.reference, copy.id], tuple[tuple[tuple[Word, ...], ...], tuple[Text, ...], Text])
    if not copy.words:
        raise ValueError("it must have a word")
    return copy


def words(where: str, value: Any) -> Iterator[str | Write]:
    """Yield what translate() returned, checked word by word."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Iterator, Sequence)):
        raise DataError(f"{where} {WORD.expected}, got {type(value).__name__}")
    written = 0  # words of the sentence so far
    for word in value:
        token, erase = word if isinstance(word, Write) else (word, 0)
        is_empty = isinstance(token, str) and not token and erase  # nothing takes the place of what is retracted
        token, erase = WORD.checked(where, ["-" if is_empty else token, erase], written)
        written += (not is_empty) - erase
        yield word if isinstance(word, Write) else token


def _word(pair: tuple[str, int], written: int) -> tuple[str, int]:
    if pair[1] > written:
        raise ValueError(f"erase is {pair[1]} after {written} words")
    return pair


ANY = Answer("", Any)
WORD = Answer("words one after the other, str without blanks or Write(token, erase)", tuple[Word, Count], _word)
COPY = Answer("a Question with the page and the language of the given one", Question, _copy)
LINE = Answer("text of one line without blanks around it", Line)
SCORES = Answer("a number for each row", list[float], lambda rows, stats: np.array(_one_each(rows, stats)))
_FLAG = Answer("true or false", bool)
_GUESSES = Answer("a list of (page, score) for each text, best first, each page once", list[Pairs], _guesses)
_BUZZES = Answer("a Buzz(score, buzz) for each step", list[Buzz], _buzzes)
_DIGITS = Annotated[int, Meta(ge=0, le=17)]
METRIC = ("name", "unit", "digits", "label", "kind", "higher_is_better")  # attributes of every metric
ATTRIBUTES: Mapping[str, Answer] = {
    **dict.fromkeys(("name", "unit", "label"), LINE),
    "digits": Answer("a number of digits, 0 to 17", _DIGITS),
    "kind": Answer("quality, lag or answers", Kind),
    "higher_is_better": _FLAG,
    "languages": ANY,  # checked where they are compared with the questions'
    "pages": Answer("the titles of pages, or None", list[Text] | None),
    "oracle": _FLAG,
    "start": Answer("a number of words, 1 or more", Annotated[int, Meta(ge=1)]),
}
METHODS: Mapping[str, Answer] = {
    "check": ANY,
    "check_texts": ANY,
    "translate_batch": Answer("a list of Emission for each question", list[list[Emission]], _emissions),
    "show": Answer("a tuple of words without blanks", tuple[Word, ...]),
    "guess": _GUESSES,
    "guess_prefixes": _GUESSES,
    "decide": _BUZZES,
    "decide_with_answer": _BUZZES,
    "signature": LINE,
    "fingerprint": Answer("text, or None", Text | None),
    "stats": Answer("a list of finite numbers, or raise NotComputable", Numbers, lambda row, *_: np.array(row)),
    "score": Answer("a finite number, or raise NotComputable", Number),
    "score_many": SCORES,
    "measure": Answer("the statistics of each segment", list[Numbers], lambda *all: [*map(tuple, _one_each(*all))]),
}
_SCORING = (*METRIC, "stats", "score", "score_many")
MEMBERS: Mapping[str, tuple[str, ...]] = {  # kind of part -> attributes and methods that are passed on
    "translator": ("languages", "check", "translate_batch"),
    "guesser": ("pages", "check_texts", "guess", "guess_prefixes"),
    "buzzer": ("oracle", "decide", "decide_with_answer"),
    "policy": ("start", "show"),
    "metric": _SCORING,
    "quality metric": (*_SCORING, "measure"),
}
