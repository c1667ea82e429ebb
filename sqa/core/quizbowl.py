"""Right answers by Quizbowl's rules, which are more generous than `is_right` (sqa/core/answers.py)."""

import functools
import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqa.core.answers import is_right, key, unmarked
from sqa.core.numbers import roman, values, word_value
from sqa.core.paths import DATA

UNDECOMPOSED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
_SILENT = re.compile(r"['’`ʻ]|\(disambiguation\)")
_BETWEEN = re.compile(r"[^\w()]+")
_PARENTHESIS = re.compile(r"\([^)]*\)?|\)")
_INITIAL = re.compile(r"\b([^\W\d])\.(?=\w\b|\s|$)")
_INITIALS = re.compile(r"(?<=\b[A-Z]) (?=[A-Z]\b)")
_LETTERS = re.compile(r"(?<=[^\W\d])[-‐‑–](?=[^\W\d])")
_CENT = re.compile(r"\s*\bper ?cent\b")
_OUTSIDE = re.compile(r"^[^\w$€£(-]+|[^\w%)]+$")
_ARTICLES = frozenset({"the", "a", "an"})
_STATES = ("emirate of ", "sultanate of ", "principality of ", "state of ")  # prefixes that do not change the name


@functools.lru_cache(maxsize=1 << 16)
def spelling(title: str) -> str:
    """Return a title without case, accents, punctuation and "(disambiguation)"; other parentheses are kept."""
    letters = key(unicodedata.normalize("NFKD", key(title)))  # some signs decompose into capitals or "_": U+33D7 is PH
    plain = unmarked(unicodedata.normalize("NFKD", letters).translate(UNDECOMPOSED)).replace("&", " and ")
    return " ".join(_BETWEEN.sub(" ", _SILENT.sub("", plain)).split())


@functools.lru_cache(maxsize=1 << 16)
def bare(title: str) -> str:
    """Return a title's `spelling` without parentheses, leading article, plural s, "Emirate of" and similar prefixes."""
    text = " ".join(_PARENTHESIS.sub(" ", spelling(title)).split())
    text = next((text.removeprefix(state) for state in _STATES if text.startswith(state)), text)
    words = text.split()
    return " ".join(_singular(word) for word in (words[1:] if len(words) > 1 and words[0] in _ARTICLES else words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


@dataclass(frozen=True, slots=True)
class Accepted:
    """Right answers as Quizbowl matches them: all matches of `is_right`, and those in the tables.

    A guess is right if one of these rules holds, tried in this order:

        spelling   both titles have the same `spelling`
        accepted   answer lines of the question's page accept the guess (`titles`, `forms`), or answer lines of the
                   guess's page accept the question's page, if that is a name without a page of its own (`forms`)
        bare       both have the same `bare` form, and no two pages share it (`shared`)

    "Paris (mythology)" is accepted for "Paris" if only one page has that bare form.  "Spins" is not accepted for "Spin"
    if both are pages.  The keys and values of the tables are spellings, except that `shared` holds bare forms.
    """

    titles: Mapping[str, Collection[str]]  # page -> other pages accepted for it, but not vice versa
    forms: Mapping[str, Collection[str]]  # page -> accepted names that have no page; applied in both directions
    shared: Collection[str]
    name: str  # contains the version of the tables; part of signatures

    def is_right(self, guess: str, page: str) -> bool:
        """Return whether the guess is right for a question about `page`."""
        if is_right(guess, page):
            return True
        given, wanted = spelling(guess), spelling(page)
        if not given or not wanted:
            return False
        if given == wanted or given in self.titles.get(wanted, ()):
            return True
        if given in self.forms.get(wanted, ()) or wanted in self.forms.get(given, ()):
            return True
        short = bare(page)
        return bool(short) and bare(guess) == short and short not in self.shared


@functools.cache
def bundled() -> Accepted:
    """Return the rule for right answers that uses the bundled tables (data/answers)."""
    text = (DATA / "answers" / "aliases.tsv").read_text(encoding="utf-8").removesuffix("\n")
    tables: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for kind, page, name in (line.split("\t") for line in text.split("\n")):
        tables[kind][page].add(name)
    version = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Accepted(tables["title"], tables["form"], frozenset(tables["shared"]), f"aliases-{version}")


def takes(guess: str, right: Collection[str]) -> bool:
    """Return whether a short answer equals a right answer by value: without case, article, ..., with numbers as digits.

    "1000" equals "1,000", "3" equals "three", and "US" equals "U.S."
    """
    return bool(by_value(guess)) and by_value(guess) in map(by_value, right)


@functools.lru_cache(maxsize=1 << 16)
def by_value(answer: str) -> str:
    """Return an English answer's `bare` form with joined initials, and with its numbers in digits."""
    answer = _LETTERS.sub(" ", _CENT.sub("%", _INITIAL.sub(r"\1", answer))).replace("&", " and ")
    written = [_OUTSIDE.sub("", word) for word in _INITIALS.sub("", answer).split()]
    words = [unmarked(word).casefold() for word in written]
    if len(words) == 1 and word_value(words[0], "en") == 1:
        return "1"
    for value, first, last in reversed(values(words, "en", written=written)):
        if not value.startswith(("month", "day")):
            first -= value.startswith("-") and words[first - 1] == "minus"
            written[first : last + 1] = [value.replace("-", "minus ")]
    written = [str(roman(word.lower()) or word) if word.isupper() and len(word) > 1 else word for word in written]
    return bare(" ".join(written))
