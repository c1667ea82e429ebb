"""What a guesser sees of a word: lower-case ASCII tokens, English stems, and which of them carry nothing.

Every function takes one word (what white space separates), never a text: the tokens of a text are those of its words,
one after the other.  So a text that grew by a word has the old tokens plus the new word's, and a guesser that goes on
from where it was sees exactly what one that starts again sees.
"""

from __future__ import annotations

import functools
import re
from typing import Protocol

from snowballstemmer import stemmer

from sqa.core.answers import unmarked

# Letters that Unicode does not decompose into a base letter and a mark.
_LETTERS = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ß": "ss"}
    | {"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ı": "i", "’": "'", "‘": "'", "ʼ": "'"}
)
_TOKEN = re.compile(r"[a-z0-9]+")
_POSSESSIVE = re.compile(r"'s(?![a-z0-9])")

# English function words, and what every question says ("For 10 points, name this ...").
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
    """What a page is learnt from, or asked for: a text, and its page (None or "" if unknown)."""

    @property
    def text(self) -> str: ...
    @property
    def page(self) -> str | None: ...


def fold(text: str) -> str:
    """Lower case without diacritics: "Kraków’s Łódź" -> "krakow's lodz". Other scripts stay as they are."""
    return unmarked(text.translate(_LETTERS)).lower()


@functools.lru_cache(maxsize=1 << 17)
def tokens(word: str) -> tuple[str, ...]:
    """The runs of a-z and 0-9 in the folded word, "'s" dropped: "Saint-Exupéry's" -> ("saint", "exupery")."""
    return tuple(_TOKEN.findall(_POSSESSIVE.sub("", fold(word))))


@functools.lru_cache(maxsize=1 << 17)
def stem(token: str) -> str:
    """The Snowball (Porter 2) English stem: "nations" -> "nation"."""
    return str(_english.stemWord(token))


@functools.lru_cache(maxsize=1 << 17)
def stems(word: str) -> tuple[str, ...]:
    """All tokens of the word, stemmed."""
    return tuple(stem(token) for token in tokens(word))


@functools.lru_cache(maxsize=1 << 17)
def content_stems(word: str) -> tuple[str, ...]:
    """The tokens of the word that are no stop words, stemmed."""
    return tuple(stem(token) for token in tokens(word) if token not in STOP_WORDS)
