"""The one rule for "is this answer right".

An answer is a Wikipedia page title.  Two titles are the same answer if they are equal after: Unicode NFC, underscores
to blanks, white space collapsed, letter case ignored.  Nothing else is forgiven: "Paris (mythology)" is not "Paris",
"Exoplanets" is not "Exoplanet", an empty title answers nothing.

(The code published with QANTA compares the strings as they are; later code of the same authors also drops blanks,
underscores and hyphens and accepts substrings, by which "a" answers "Alaska".  Neither is done here.)

A config may ask for a second, more generous rule beside it: `Accepted`, what a Quizbowl moderator takes.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal


def canonical(page: str) -> str:
    """The title in NFC, blanks for underscores, white space collapsed. Keeps the letter case."""
    return " ".join(unicodedata.normalize("NFC", page).replace("_", " ").split())


LINE_ENDS = "\u2028\u2029"  # besides control characters: an id that holds one would tear a table


def unwritable(text: str, also: str = "") -> str:
    """The first control character of a title or an id, or one of `also`, escaped; "" where there is none."""
    return next((ascii(c)[1:-1] for c in text if unicodedata.category(c) == "Cc" or c in also), "")


@functools.lru_cache(maxsize=1 << 16)
def key(page: str) -> str:
    """`canonical` without letter case: equal for two titles of the same answer. Idempotent."""
    return unicodedata.normalize("NFC", canonical(page).casefold())


def resolve(page: str, aliases: Mapping[str, str]) -> str:
    """The canonical title, after a data set's own table of other spellings (spelling -> title), one step."""
    by_key = {key(spelling): title for spelling, title in aliases.items()}
    return canonical(by_key.get(key(page), page))


def is_right(guess_page: str, question_page: str) -> bool:
    """True if the guessed page is the question's page."""
    return key(guess_page) == key(question_page) != ""


def takes(guess: str, right: Collection[str]) -> bool:
    """True if a short answer is one of the right ones, compared as `bare` forms: without case, article, ..."""
    return bool(bare(guess)) and bare(guess) in map(bare, right)


# --------------------------------------------------------------------------------------------- as Quizbowl matches them

_UNDECOMPOSED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
_SILENT = re.compile(r"['’`ʻ]|\(disambiguation\)")
_BETWEEN = re.compile(r"[^\w()]+")
_PARENTHESIS = re.compile(r"\([^)]*\)?|\)")
_ARTICLES = frozenset({"the", "a", "an"})
_STATES = ("emirate of ", "sultanate of ", "principality of ", "state of ")  # as good as the name alone


STROKES = str.maketrans("łŁøØđĐ", "lLoOdD")  # letters that Unicode does not take apart


def unmarked(text: str, form: Literal["NFD", "NFKD"] = "NFKD") -> str:
    """A text taken apart by a normal form of Unicode, without accents and other marks: "año" -> "ano"."""
    return "".join(c for c in unicodedata.normalize(form, text) if not unicodedata.combining(c))


@functools.lru_cache(maxsize=1 << 16)
def spelling(title: str) -> str:
    """A title without case, accents, punctuation and "(disambiguation)"; other parentheses stay."""
    letters = key(unicodedata.normalize("NFKD", key(title)))  # some signs are made of capitals or of "_": U+33D7 is PH
    plain = unmarked(unicodedata.normalize("NFKD", letters).translate(_UNDECOMPOSED)).replace("&", " and ")
    return " ".join(_BETWEEN.sub(" ", _SILENT.sub("", plain)).split())


@functools.lru_cache(maxsize=1 << 16)
def bare(title: str) -> str:
    """`spelling` without what stands in parentheses, an article before it, a plural's s, "Emirate of" and the like."""
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
    """Right answers as Quizbowl matches them: everything that `is_right` takes, and what the tables hold.

    A guess is right if one of these holds, tried in this order:

        spelling   both titles have the same `spelling`
        accepted   packets' answer lines of the question's page take the guess for right (`titles`, `forms`), or the
                   guess's page takes the question's, where that is a name that is no page of its own (`forms`)
        bare       both have the same `bare` form, and no two pages share it (`shared`)

    "Paris (mythology)" is "Paris" if one page has that bare form; if both "Spin" and "Spins" are pages, they differ.
    sqa/data/answer_aliases.py makes the tables; all keys and values are spellings, `shared` are bare forms.
    """

    titles: Mapping[str, Collection[str]]  # page -> other pages that are right where it is asked for; one way
    forms: Mapping[str, Collection[str]]  # page -> names that are no pages; both ways
    shared: Collection[str]
    name: str  # with the version of the tables: part of signatures

    def is_right(self, guess: str, page: str) -> bool:
        """True if the guess is right where `page` is asked for."""
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
