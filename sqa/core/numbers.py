"""Words that are numbers, times of day, months and weekdays, in the languages of data/languages.

    values(("four", "thousand"), "en")      [("4000", 0, 1)]: value, first and last word

A number has one value, read by the rules of the text's own language: "2.000" is 2000 in Spanish and 2 in English.  A
stem with a star takes up to ENDING more letters, for Polish inflection.  Words are compared in the form of
`sqa.metrics.quality.names.spelled`: lower case, no accents.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from sqa.core.languages import language_of

ENDING = 5  # maximum number of letters after a stem
POINT = frozenset({"en", "zh", "ja", "ko", "th", "he", "hi", "ar"})  # languages with a decimal point; others: a comma
_ORDINAL = "st|nd|rd|th|'?s|er|o|a|ª|º|°"
_UNITS = {"K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "mn": 1e6, "mln": 1e6, "bn": 1e9, "mld": 1e9, "tn": 1e12}
_MONEY = {"m": 1e6, "b": 1e9}  # only after an amount of money: $3m
_UNIT = "|".join(_UNITS | _MONEY)
DIGITS = re.compile(
    r"([-−]?)((?:[A-Z]{0,2}\$|[€£])?)(?:(\d[\d.,' ]*\d|\d)?([½⅓⅔¼¾⅕⅛⅜⅝⅞])|(\d[\d.,' ]*\d|\d))"
    rf"({_ORDINAL}|{_UNIT})?[%€]?"
)
CLOCK = re.compile(r"([01]?\d|2[0-3])(?:[:.h]([0-5]\d))?(?:h|hrs)?(am|pm)?")
NOON = {"am": 0, "a.m": 0, "pm": 12, "p.m": 12}
Value = tuple[str, int, int]
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
def reading(word: str, language: str) -> float | None:
    """Return the value of a number in digits, or None for other words.

    Groups of three digits after the mark of thousands are thousands ("2.000" in Spanish); any other mark is decimal.
    """
    match = DIGITS.fullmatch(word.replace("’", "'").replace("\u00a0", " ").replace("\u202f", " "))
    if not match:
        return None
    sign, money, before, fraction, digits, unit = match.groups()
    decimal, thousands = (".", ",") if language in POINT else (",", ".")
    value = 0.0
    if text := (before or digits or "").replace("'", "").replace(" ", ""):
        groups = text.split(thousands)
        if len(groups) > 1 and not (
            0 < len(groups[0]) < 4 and all(len(g.partition(decimal)[0]) == 3 for g in groups[1:])
        ):
            if len(groups) > 2 or decimal in text:
                return None
            text = text.replace(thousands, decimal)  # 4.5 in a Spanish text
        whole, _, rest = text.replace(thousands, "").partition(decimal)
        if not (whole + (rest or "0")).isdigit():
            return None
        value = float(f"{whole}.{rest or 0}")
    value += unicodedata.numeric(fraction) if fraction else 0.0
    scale = (_UNITS | (_MONEY if money else {})).get(unit or "", None if unit in _MONEY else 1.0)
    return None if scale is None else (-value if sign else value) * scale


@lru_cache(maxsize=1 << 16)
def clock(word: str, after: str = "") -> str | None:
    """Return a time of day as "20:30", from "20:30", "8:30pm", or "8:30" and the next word "p.m."; else None."""
    match = CLOCK.fullmatch(word.lower().replace("a.m", "am").replace("p.m", "pm"))
    half = NOON.get(after.lower().rstrip("."))
    if not match or not (":" in word or (match[2] and "h" in word) or match[3] or half is not None):
        return None
    half = NOON[match[3]] if match[3] else half
    hour = int(match[1])
    if half is not None and 1 <= hour <= 12:
        hour = hour % 12 + half
    return f"{hour}:{match[2] or '00'}"


def roman(word: str) -> int | None:
    """Return the value of a Roman numeral up to 399; None for other words."""
    match = ROMAN.fullmatch(word)
    if not match:
        return None
    digits = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
    values = [digits[letter] for letter in word]
    return sum(-v if v < later else v for v, later in pairwise([*values, 0]))


def values(
    words: Sequence[str], language: str, capital: Sequence[bool] = (), written: Sequence[str] = ()
) -> list[Value]:
    """Return the numbers, times and dates of some words: (value, first index, last index).

    `capital`, if given, marks the words that may be dates: "May", not "may".  `written`, if given, holds the words with
    their signs and marks, which digits are read from.
    """
    found: list[Value] = []
    written = written or words
    at = 0
    while at < len(words):
        date = date_key(words[at], language) if not capital or capital[at] else None
        after = written[at + 1] if at + 1 < len(words) else ""
        if date:
            value, last = date, at
        elif time := clock(written[at], after):
            value, last = time, at + (after.lower().rstrip(".") in NOON)
        else:
            number, last = _number(words, written, at, language)
            below = at and words[at - 1] == "minus" and not (found and found[-1][2] == at - 2)  # not 5 minus 3
            value = "" if number is None else f"{-number if below else number:.12g}"
        if value:
            found.append((value, at, last))
        at = last + 1
    return found


def _number(words: Sequence[str], written: Sequence[str], at: int, language: str) -> tuple[float | None, int]:
    """Return the value and the last index of the number that begins at a word; None if none does."""
    digits = reading(written[at], language)
    if digits is not None:
        last = at
        if re.fullmatch(r"[-−]?\d{1,3}", written[at]):  # 10 000
            while last + 1 < len(words) and re.fullmatch(r"\d{3}", written[last + 1]):
                last += 1
                digits = digits * 1000 + int(written[last]) * (-1 if digits < 0 else 1)
        parts = [digits]
    else:
        parts, last = _in_words(words, at, language)
        if not parts:
            return None, at
    while last + 1 < len(words):
        if added := _half(words, last + 1, language):  # "and a half": of the scale that follows, or of the last one
            after = word_value(words[added], language) if added < len(words) else None
            if after in _SCALES:
                parts, last = [(sum(parts) + 0.5) * float(after or 1)], added
            else:
                scale = max((scale for scale in _SCALES[1:] if not parts[-1] % scale), default=1)
                parts, last = [*parts, scale / 2], added - 1
            continue
        ahead = last + 1
        if words[ahead] in ("and", "y", "i") and digits is None and ahead + 1 < len(words):
            after = word_value(words[ahead + 1], language)
            ahead += after is not None and after < 100 and not parts[-1] % 10
        value = word_value(words[ahead], language)
        if value is None or not _add(parts, value, digits is not None, words[ahead], language):
            break
        last = ahead
    return float(sum(parts)), last


def _in_words(words: Sequence[str], at: int, language: str) -> tuple[list[float], int]:
    """Return the first part of a number in words and its last index; [] if none begins here.

    "One" alone is no number, since it is often an article or a pronoun.
    """
    halves = language_of(language).halves
    after = word_value(words[at + 1], language) if at + 1 < len(words) else None
    if words[at] in halves.one_and_a_half:
        return [1.5], at
    first = word_value(words[at], language)
    half = words[at] in halves.half
    share = at if half or first is None or words[at] in halves.quarter else at + 1
    if half or (share < len(words) and words[share] in halves.quarter):  # half a million, three quarters of a million
        part = 0.5 if half else (first or 1) / 4 if share > at else 0.25
        ahead = next((n for n in range(share + 1, len(words)) if words[n] not in ("a", "of", "un", "una", "de")), share)
        scale = word_value(words[ahead], language) if ahead > share else None
        if scale and (scale in _SCALES or words[ahead] in _DOZENS):
            return [part * scale], ahead
        if half:
            return [], at
        if share > at and first in (2, 3) and words[share].endswith("s"):
            return [part], share
    if first is None:
        return [], at
    if first == 1:
        return ([1.0], at) if after in _SCALES or _half(words, at + 1, language) else ([], at)
    if language == "en" and 10 <= first <= 20 and after is not None and 10 <= after < 100:  # nineteen ninety
        return [first * 100.0 + after], at + 1
    return [float(first)], at


def _half(words: Sequence[str], at: int, language: str) -> int:
    """Return the index after "and a half" at a position; 0 if it is not there."""
    for phrase in language_of(language).halves.and_a_half:
        if tuple(words[at : at + len(phrase)]) == phrase:
            return at + len(phrase)
    return 0


_SCALES = (100, 1000, 10**6, 10**9, 10**12)
_DOZENS = frozenset({"dozen", "dozens", "docena", "docenas", "tuzin", "tuziny", "tuzinow"})


def _add(parts: list[float], value: int, digits: bool, word: str, language: str) -> bool:
    """Extend a number by a scale ("thousand") or by a value for its final zeros; return False for any other word."""
    if value in _SCALES or word in _DOZENS:
        smaller = 0.0
        while parts and abs(parts[-1]) < value:
            smaller += parts.pop()
        parts.append((smaller or 1) * value)
        return True
    year = language == "en" and len(parts) == 1 and 1000 <= parts[0] < 2100  # nineteen ninety five
    if digits or parts[-1] % 10 ** len(str(value)) or (parts[-1] == 0 and not year):
        return False
    parts.append(value)
    return True
