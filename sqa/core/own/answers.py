"""What a part of your own may return: checked where it is called, else a DataError of one line.

mine.py:build: guess() must return a list of guesses (page, score) for each of the 3 texts; guess 1 of text 1 is
str 'Laser'

A check takes the call, the value that came back, and the call's arguments; it returns the value in its plain type.
"""

import math
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from msgspec import ValidationError, convert

from sqa.core.errors import DataError, TraceError
from sqa.core.trace import check_emissions, wrong_guesses
from sqa.core.types import Buzz, Emission, Guess, Question, Write

Check = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A method of a part of your own, for messages."""

    where: str  # "mine.py:build: guess()"
    does: str = "must return"

    def wrong(self, expected: str, value: object, item: str = "") -> DataError:
        """The error of a value that is not what was expected; `item` names it where it is a part of the whole."""
        return DataError(f"{self.where} {self.does} {expected}{f'; {item} is' if item else ', got'} {shown(value)}")


def shown(value: object) -> str:
    """A value with its type, short, whatever its own repr does."""
    if value is None:
        return "None"
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    try:
        return f"{type(value).__name__} {' '.join(short.repr(value).split())}"
    except ValueError:  # an int of more digits than Python writes
        return type(value).__name__


# ----------------------------------------------------------------------------------------------------- single values


def is_text(value: object) -> bool:
    """A str that can be encoded."""
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def is_word(value: object) -> bool:
    """A text without blanks, at least one character long."""
    return is_text(value) and str(value).split() == [value]


def number(value: object) -> float | None:
    """A finite number as a float, None for anything else; a bool is no number."""
    try:
        converted = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except (OverflowError, ValueError, TypeError):
        return None
    return converted if math.isfinite(converted) else None


def is_count(value: object, least: int = 0) -> bool:
    """An integer of at least `least`; a bool is none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_flag(value: object) -> bool:
    """A bool, of Python or of numpy."""
    return isinstance(value, (bool, np.bool_))


def is_list(value: object) -> bool:
    """A list, a tuple, an array or the like: ordered, of a known length, no text."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _is_line(value: object) -> bool:
    """A text of one line, without tabs, as tables need it."""
    return is_text(value) and bool(value) and str(value).isprintable()


def _check(expected: str, valid: Callable[[Any], bool], convert: Callable[[Any], Any]) -> Check:
    """The check of a single value."""

    def check(call: Call, value: Any, *_: object) -> Any:
        if not valid(value):
            raise call.wrong(expected, value)
        return convert(value)

    return check


text = _check("text of one line", _is_line, str)
text_or_none = _check("text of one line", lambda value: value is None or _is_line(value), lambda value: value)
title = _check("text of one line without blanks around it", lambda v: _is_line(v) and v == v.strip(), str)
digits = _check("a whole number of digits, 0 to 17", lambda value: is_count(value) and value <= 17, int)
kind = _check("one of quality, lag, answers", lambda v: isinstance(v, str) and v in ("quality", "lag", "answers"), str)
flag = _check("True or False", is_flag, bool)
start = _check("a whole number of words, 1 or more", lambda value: is_count(value, 1), int)  # of a policy
finite = _check("a finite number, or raise NotComputable where there is none", lambda v: number(v) is not None, number)


def _rows(call: Call, value: Any, expected: str, n: int | None = None, item: str = "") -> list[Any]:
    """A list, of `n` values if that is said; `item` names it where it is a part of the whole."""
    if not is_list(value):
        raise call.wrong(expected, value, item)
    rows = list(value)
    if n is not None and len(rows) != n:
        raise DataError(f"{call.where} {call.does} {expected}, got {len(rows)} of them")
    return rows


def _number(call: Call, value: Any, expected: str, item: str) -> float:
    """A finite number that is a part of the whole."""
    if (converted := number(value)) is None:
        raise call.wrong(expected, value, item)
    return converted


def _items(call: Call, value: Any, expected: str) -> Iterator[Any]:
    """An iterator over a value that is no text."""
    if isinstance(value, (str, bytes, bytearray)):
        raise call.wrong(expected, value)
    try:
        return iter(value)
    except TypeError as error:  # no iterable, or an array that is a number
        raise call.wrong(expected, value) from error


# --------------------------------------------------------------------------------------------------------- guessers


def guesses(call: Call, value: Any, texts: Sequence[str], n: int) -> list[list[Guess]]:
    """At most `n` guesses, best first, for each text, or after each word of one."""
    expected = f"a list of guesses (page, score) for each of the {len(texts)} texts"
    checked = []
    for at, row in enumerate(_rows(call, value, expected, len(texts)), 1):
        listed = _rows(call, row, expected, item=f"the one of text {at}")
        checked.append([_guess(call, expected, guess, f"guess {i} of text {at}") for i, guess in enumerate(listed, 1)])
        if wrong := wrong_guesses(checked[-1], n):
            raise DataError(f"{call.where}: text {at}: {wrong}")
    return checked


def _guess(call: Call, expected: str, value: Any, item: str) -> Guess:
    if not isinstance(value, tuple) or len(value) != 2:
        raise call.wrong(expected, value, item)
    page, score = value
    if not is_text(page):
        raise call.wrong(f"{expected}, a page being text", page, f"the page of {item}")
    return Guess(page, _number(call, score, f"{expected}, a score being a finite number", f"the score of {item}"))


def pages(call: Call, value: Any) -> Any:
    """Titles, or None."""
    if value is None:
        return None
    titles = list(_items(call, value, "the titles of pages, or None"))
    for each in titles:
        if not is_text(each):
            raise call.wrong("the titles of pages, or None", each, "one of them")
    return frozenset(titles)


# ---------------------------------------------------------------------------------------------------------- buzzers


def buzzes(call: Call, value: Any, history: Sequence[Any], page: str = "") -> list[Buzz]:
    """A buzz for each step."""
    expected = f"a Buzz(score, buzz) for each of the {len(history)} steps"
    checked = []
    for at, buzz in enumerate(_rows(call, value, expected, len(history)), 1):
        if not isinstance(buzz, Buzz):
            raise call.wrong(expected, buzz, f"that of step {at}")
        wanted = f"{expected}, a score being a finite number"
        score = _number(call, buzz.score, wanted, f"the score of step {at}")
        if not is_flag(buzz.buzz):
            raise call.wrong(f"{expected}, buzz being True or False", buzz.buzz, f"that of step {at}")
        checked.append(Buzz(score, bool(buzz.buzz)))
    return checked


# ------------------------------------------------------------------------------------------ translators and policies

_WORDS = "words one after the other, each a str without blanks or a Write(token, erase)"


def words(call: Call, value: Any) -> Iterator[Any]:
    """An iterator over what a translator writes; each item is still to be checked by `word`."""
    if isinstance(value, (Mapping, AbstractSet)):
        raise call.wrong(_WORDS, value)
    return _items(call, value, _WORDS)


def word(call: Call, value: Any, written: int) -> str | Write:
    """What is written next, after `written` words of the sentence."""
    token, erase = value if isinstance(value, Write) else (value, 0)
    if not (is_word(token) or (is_text(token) and token == "" and erase)):
        raise call.wrong(_WORDS, token, f"word {written + 1}")
    if not is_count(erase) or erase > written:
        raise call.wrong(f"{_WORDS}, which takes back at most the words so far, {written}", erase, "erase")
    return value if isinstance(value, (str, Write)) else str(value)


def emissions(call: Call, value: Any, questions: Sequence[Question]) -> list[list[Emission]]:
    """The emissions of each question."""
    expected = f"a list of Emission for each of the {len(questions)} questions"
    checked = []
    for question, row in zip(questions, _rows(call, value, expected, len(questions)), strict=True):
        for step, emission in enumerate(_rows(call, row, expected, item=f"that of {question.id}")):
            if not isinstance(emission, Emission):
                raise call.wrong(expected, emission, f"step {step} of {question.id}")
            counts = (emission.sentence, emission.g, emission.erase)
            if not (all(map(is_count, counts)) and is_flag(emission.ended) and is_text(emission.token)):
                typed = "Emission(sentence: int, token: str, g: int, ended: bool, erase: int)"
                raise call.wrong(f"{expected}, {typed}", emission, f"step {step} of {question.id}")
        try:
            check_emissions(question, row)
        except TraceError as error:
            raise DataError(f"{call.where} must return {expected}; {error}") from error
        checked.append(list(row))
    return checked


def words_shown(call: Call, value: Any, *_: object) -> tuple[str, ...]:
    """What the reader sees, of a policy."""
    for at, token in enumerate(_rows(call, value, "a tuple of words"), 1):
        if not is_word(token):
            raise call.wrong("a tuple of words, each a str without blanks", token, f"word {at}")
    return tuple(value)


# ---------------------------------------------------------------------------------------------------- perturbations


def question(call: Call, value: Any, given: Question) -> Question:
    """A question with the answer of the original."""
    if not isinstance(value, Question):
        raise call.wrong("a Question", value)
    try:
        made = convert({field.name: getattr(value, field.name) for field in fields(Question)}, Question)
    except ValidationError as error:
        raise DataError(f"{call.where} must return a Question; {error}") from error
    if (made.page, made.language) != (given.page, given.language):
        raise DataError(f"{call.where} must return a Question with the page and the language of the one it was given")
    if not made.words or not all(map(is_word, made.words)) or not all(map(is_text, (made.id, *made.reference))):
        raise DataError(f"{call.where} must return a Question of words without blanks, at least one, and plain texts")
    return made


# ----------------------------------------------------------------------------------------------------------- metrics


def statistics(call: Call, value: Any, *_: object) -> tuple[float, ...]:
    """Numbers that can be added up."""
    expected = "a list of finite numbers, or raise NotComputable where there are none"
    if not (rows := _rows(call, value, expected)):
        raise call.wrong(expected, value)
    return tuple(_number(call, each, expected, f"number {at}") for at, each in enumerate(rows, 1))


def measured(call: Call, value: Any, segments: Sequence[Any]) -> list[tuple[float, ...]]:
    """The statistics of each segment."""
    expected = f"the statistics of each of the {len(segments)} segments"
    return [statistics(call, row) for row in _rows(call, value, expected, len(segments))]


def scores(call: Call, value: Any, stats: Any) -> Any:
    """A score for each row of sums (B, d): (B,) float64, nan where there is none."""
    expected = f"a number for each of the {len(stats)} rows"
    try:
        array = np.array(_rows(call, value, expected, len(stats)), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise call.wrong(expected, value) from error
    if array.shape != (len(stats),):
        raise call.wrong(expected, value)
    return array
