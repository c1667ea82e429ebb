"""A guesser's view of a word: lower-case ASCII tokens, English stems, and stop words.

The tokens of a text are the tokens of its words in order, and a word's tokens do not depend on its neighbours.  A
further word thus only appends its tokens, and incremental reading equals reading from the start.
"""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from snowballstemmer import stemmer

from sqa.core import unmarked

# Letters without a Unicode decomposition into a base letter and a mark.
_LETTERS = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ß": "ss"}
    | {"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ı": "i", "’": "'", "‘": "'", "ʼ": "'"}
)
_TOKEN = re.compile(r"[a-z0-9]+")
_ENDS = (".", "?", "!")
_CLOSING = "\"'”’»)]"
_POSSESSIVE = re.compile(r"'s(?![a-z0-9])")

# English function words, and the common words of questions ("For 10 points, name this ...").
STOP_WORDS = frozenset(
    """a about above after again against all am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    herself him himself his how i if in into is it its itself just me more most my myself no nor not of off on once
    only or other our ours ourselves out over own same she should so some such than that the their theirs them
    themselves then there these they this those through to too under until up very was we were what when where which
    while who whom why will with would you your yours yourself s t
    name identify give points point ftp ten 10 one""".split()
)

_english = stemmer("english")


class Profile(Protocol):
    """A training or question text and the page it describes (None or "" if unknown)."""

    @property
    def text(self) -> str: ...
    @property
    def page(self) -> str | None: ...


class PageText(NamedTuple):
    """A text and its page, without further data."""

    text: str
    page: str | None


def fold(text: str) -> str:
    """Return text in lower case without diacritics: "Kraków’s Łódź" -> "krakow's lodz"; keep other scripts."""
    return unmarked(text.translate(_LETTERS)).lower()


@functools.lru_cache(maxsize=1 << 17)
def tokens(word: str) -> tuple[str, ...]:
    """Return the runs of a-z and 0-9 in the folded word, without "'s": "Saint-Exupéry's" -> ("saint", "exupery")."""
    return tuple(_TOKEN.findall(_POSSESSIVE.sub("", fold(word))))


@functools.lru_cache(maxsize=1 << 17)
def stem(token: str) -> str:
    """Return the Snowball (Porter 2) English stem: "nations" -> "nation"."""
    return str(_english.stemWord(token))


@functools.lru_cache(maxsize=1 << 17)
def stems(word: str) -> tuple[str, ...]:
    """Return all tokens of the word, stemmed."""
    return tuple(stem(token) for token in tokens(word))


@functools.lru_cache(maxsize=1 << 17)
def content_stems(word: str) -> tuple[str, ...]:
    """Return the stems of the word's tokens that are not stop words."""
    return tuple(stem(token) for token in tokens(word) if token not in STOP_WORDS)


def line_stems(line: str) -> frozenset[str]:
    """Return the stems of a text's words, without stop words."""
    return frozenset(stem for word in line.split() for stem in content_stems(word))


def spans(words: Sequence[str], least: int, most: int) -> list[tuple[int, int]]:
    """Split a text into passages of about one sentence and return their (begin, end) word indices; [] for no words.

    A passage ends at a sentence end if it has `least` words, and anywhere if it has `most`.  All passages except the
    last are independent of later words.
    """
    passages, start = [], 0
    for end, word in enumerate(words, start=1):
        if end - start >= most or (end - start >= least and word.rstrip(_CLOSING).endswith(_ENDS)):
            passages.append((start, end))
            start = end
    return passages if start == len(words) else [*passages, (start, len(words))]
