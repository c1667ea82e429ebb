"""Words that are numbers, months and weekdays, in the languages of sqa/core/languages.

    values(("four", "thousand"), "en")      [({"4000"}, 0, 1)]: values, first and last word

A stem with a star takes up to ENDING more letters, for Polish inflection.  Words are compared in the form of
`sqa.metrics.quality.names.spelled`: lower case, no accents.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from sqa.core.languages import language_of

ENDING = 5  # maximum number of letters after a stem
DIGITS = re.compile(r"(\d{1,3}(?:[.,]\d{3})+|\d+)(?:[.,](\d+))?(?:st|nd|rd|th|['’]?s|er|o|a|ª|º|°|)")
Value = tuple[frozenset[str], int, int]
ROMAN = re.compile(r"(?=[ivxlc])(c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")


@lru_cache(maxsize=8)
def _table(language: str) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """Return whole words, and stems longest first, with their values."""
    entries = (entry.split(":") for entry in language_of(language).numbers.split())
    pairs = [(stem, int(value)) for value, stems in entries for stem in stems.split(",")]
    units = dict.fromkeys(language_of(language).ones.split(), 1)
    units |= dict(zip(language_of(language).small_numbers.split(), (0, *range(2, 21)), strict=False))
    whole = units | {stem: value for stem, value in pairs if not stem.endswith("*")}
    stems = sorted(((stem[:-1], value) for stem, value in pairs if stem.endswith("*")), key=lambda p: -len(p[0]))
    return whole, stems


@lru_cache(maxsize=1 << 16)
def word_value(word: str, language: str) -> int | None:
    """Return the number that a word denotes, or None for other words."""
    whole, stems = _table(language)
    if word in whole:
        return whole[word]
    return next((value for stem, value in stems if word.startswith(stem) and len(word) <= len(stem) + ENDING), None)


@lru_cache(maxsize=1 << 16)
def date_key(word: str, language: str) -> str | None:
    """Return "month-11" or "day-1" for a month's or weekday's name; None for other words."""
    for index, names in enumerate(language_of(language).dates.split()):
        for name in names.split(","):
            if word == name or (name.endswith("*") and word.startswith(name[:-1]) and len(word) < len(name) + ENDING):
                return f"month-{index + 1}" if index < 12 else f"day-{index - 11}"
    return None


@lru_cache(maxsize=1 << 16)
def readings(word: str) -> frozenset[float]:
    """Return the possible values of digits: 4.700 is 4700 or 4.7, 4.5 is 4.5; empty for other words."""
    match = DIGITS.fullmatch(word)
    if not match:
        return frozenset()
    whole, fraction = match.groups()
    plain = float(re.sub("[.,]", "", whole))
    if fraction:
        return frozenset({float(f"{int(plain)}.{fraction}")})
    parts = re.split("[.,]", whole)
    return frozenset({plain, float(".".join(parts))} if len(parts) == 2 else {plain})


def roman(word: str) -> int | None:
    """Return the value of a Roman numeral up to 399; None for other words."""
    match = ROMAN.fullmatch(word)
    if not match:
        return None
    digits = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
    values = [digits[letter] for letter in word]
    return sum(-v if v < later else v for v, later in pairwise([*values, 0]))


def values(words: Sequence[str], language: str, capital: Sequence[bool] = ()) -> list[Value]:
    """Return the numbers and dates of some words: (possible values, first index, last index).

    `capital`, if given, marks the words that may be dates: "May", not "may".
    """
    numbers_and_dates: list[Value] = []
    at = 0
    while at < len(words):
        date = date_key(words[at], language) if not capital or capital[at] else None
        if date:
            numbers_and_dates.append((frozenset({date}), at, at))
            at += 1
            continue
        numbers, last = _number(words, at, language)
        if numbers:
            numbers_and_dates.append((frozenset(f"{number:.12g}" for number in numbers), at, last))
        at = last + 1
    return numbers_and_dates


def _number(words: Sequence[str], at: int, language: str) -> tuple[frozenset[float], int]:
    """Return the possible values and the last index of the number that begins at a word; empty if none does."""
    digits = readings(words[at])
    sums = [[value] for value in sorted(digits)]
    if not sums:
        first = word_value(words[at], language)
        if first is None or first == 1:
            return frozenset(), at
        sums = [[first]]
    last = at
    for index in range(at + 1, len(words)):
        value = word_value(words[index], language)
        if value is None and words[index] in ("and", "y", "i") and not digits and index + 1 < len(words):
            after = word_value(words[index + 1], language)
            if after is None or after >= 100 or sums[0][-1] % 10:
                break
            continue
        if value is None or not all(_add(parts, value, bool(digits)) for parts in sums):
            break
        last = index
    return frozenset(float(sum(parts)) for parts in sums), last


def _add(parts: list[float], value: int, digits: bool) -> bool:
    """Extend a number by a scale ("thousand") or by a value for its final zeros; return False for any other word."""
    if value >= 100 and value in (100, 1000, 10**6, 10**9, 10**12):
        smaller = 0.0
        while parts and parts[-1] < value:
            smaller += parts.pop()
        parts.append((smaller or 1) * value)
        return True
    if digits or parts[-1] % 10 ** len(str(value)) or parts[-1] == 0:
        return False
    parts.append(value)
    return True
