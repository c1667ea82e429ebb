"""Cuts a question into sentences of words without changing a word.

The rules are Koehn and Schroeder's (package sentence-splitter, lists of abbreviations per language); on top of them
come the few cases its lists lack in Quizbowl text: "EE. UU.", "Mt. McKinley", "w latach 90. XX wieku", and a stray
quotation mark or number that would be a sentence by itself.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from sqa.core.types import BY_CHARACTER

if TYPE_CHECKING:
    from sentence_splitter import SentenceSplitter

SPLIT = frozenset(
    "ca cs da de el en es fi fr hu is it lt lv nl no pl pt ro ru sk sl sv tr".split()
)  # what sentence-splitter 1.4 has abbreviations for
LANGUAGES = SPLIT | BY_CHARACTER

_ROMAN = re.compile(r"[IVXLC]+[.,;:]?$")
_ORDINAL = re.compile(r"\d+\.$")
_STOP = re.compile(
    r"(?<=[。！？!?])(?![。！？!?」』”）)])|(?<=[。！？!?][」』”）)])"
)  # after these a sentence ends in zh and ja
_UNIT = re.compile(r"[A-Za-z0-9]+(?:[.,'’-][A-Za-z0-9]+)*|\S")


@functools.cache
def _splitter(language: str) -> SentenceSplitter:
    from sentence_splitter import SentenceSplitter

    return SentenceSplitter(language)


def _continues(language: str, left: list[str], right: list[str]) -> bool:
    """True if the cut between `left` and `right` falls inside a sentence."""
    from sqa.core.languages import language_of

    last = left[-1].lstrip("\"'“„«([¿¡")
    if last.endswith(".") and last[:-1] in language_of(language).abbreviations:
        return True
    return language_of(language).dotted_ordinals and bool(_ORDINAL.match(last) and _ROMAN.match(right[0]))


def _is_crumb(words: list[str]) -> bool:
    """True for a piece with fewer than two words that hold a letter: no sentence of a question is that short."""
    return sum(any(map(str.isalpha, word)) for word in words) < 2


def spaced(text: str, language: str) -> str:
    """A text with blanks between its words: as it stands, but for languages written without and a text without any."""
    if language not in BY_CHARACTER or len(text.split()) > 1:
        return text
    return " ".join(_UNIT.findall(text))


@functools.lru_cache(maxsize=1 << 13)  # one program asks for the questions of a set many times
def split(text: str, language: str) -> tuple[tuple[str, ...], ...]:
    """The sentences of `text`, each a tuple of words (what white space separates).

    All words are kept in order: joined with single blanks they are " ".join(text.split()); in BY_CHARACTER, where a
    character is a word, all characters but blanks.  An empty text has no sentences.  `language` is one of LANGUAGES.
    """
    line = " ".join(text.split())
    if not line:
        return ()
    if language in BY_CHARACTER:
        return tuple(tuple(_UNIT.findall(piece)) for piece in _STOP.split(line) if piece.strip())
    pieces = [piece.split() for piece in _splitter(language).split(line)]
    merged: list[list[str]] = [pieces[0]]
    for piece in pieces[1:]:
        if _continues(language, merged[-1], piece) or _is_crumb(piece) or _is_crumb(merged[-1]):
            merged[-1] = merged[-1] + piece
        else:
            merged.append(piece)
    return tuple(tuple(piece) for piece in merged)
