"""Split a question into sentences of words without changing a word.

The rules are those of Koehn and Schroeder (package sentence-splitter, with abbreviations per language).  Additional
rules cover Quizbowl cases missing from its lists: "EE. UU.", "Mt. McKinley", "w latach 90. XX wieku", and a stray
quotation mark or number that would form its own sentence.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sqa.core import BLANKLESS, BY_CHARACTER, DataError, marks

if TYPE_CHECKING:
    from sentence_splitter import SentenceSplitter

# languages with abbreviations in sentence-splitter 1.4
SPLIT = frozenset("ca cs da de el en es fi fr hu is it lt lv nl no pl pt ro ru sk sl sv tr".split())
LANGUAGES = SPLIT | BY_CHARACTER

_ROMAN = re.compile(r"[IVXLC]+[.,;:]?$")
_ORDINAL = re.compile(r"\d+\.$")
# sentence-final marks of zh and ja
_STOP = re.compile(r"(?<=[。！？!?])(?![。！？!?」』”）)])|(?<=[。！？!?][」』”）)])")
_BLANKLESS = re.compile(f"[{BLANKLESS}]")
VOICING = "\uff9e\uff9f"  # voicing marks of half-width kana, which belong to the character before
LETTERS = 6  # greatest plausible mean number of letters per word in these scripts; kana and Chinese count 1.5 each


@functools.cache
def _splitter(language: str) -> SentenceSplitter:
    from sentence_splitter import SentenceSplitter

    return SentenceSplitter(language)


def _continues(language: str, left: list[str], right: list[str]) -> bool:
    """Return True if the cut between `left` and `right` falls inside a sentence."""
    from sqa.core import language_of

    last = left[-1].lstrip("\"'“„«([¿¡")
    if last.endswith(".") and last[:-1] in language_of(language).abbreviations:
        return True
    return language_of(language).dotted_ordinals and bool(_ORDINAL.match(last) and _ROMAN.match(right[0]))


def _lettered(words: list[str]) -> int:
    """Return the number of words that contain a letter; no question has a sentence with fewer than two."""
    return sum(any(map(str.isalpha, word)) for word in words)


def _units(text: str) -> list[str]:
    """Return the characters of a text with their marks; a run of letters or digits of other scripts is one unit."""
    own_marks = marks(text)
    letters = rf"(?:(?![_{BLANKLESS}\uff00-\uffef])[\w{own_marks}])+"
    return re.findall(rf"{letters}(?:[.,'’-]{letters})*|\S[{VOICING}{own_marks}]*", text)


def spaced(text: str, language: str) -> str:
    """Return a text with spaces between its words; in BY_CHARACTER languages, missing spaces are added.

    U+200B (zero-width space) in Thai, Khmer and similar scripts becomes a space.
    """
    if language in BY_CHARACTER:
        return " ".join(_units(text)) if len(text.split()) < 2 or _lacks_blanks([text]) else text
    return text.replace("\u200b", " ") if _BLANKLESS.search(text) else text


def all_spaced(where: str, texts: Sequence[str], language: str, slack: int = 0) -> list[str]:
    """Apply `spaced` to texts.

    Raises DataError, starting with `where`, for Thai, Khmer and similar scripts without spaces between words.  `slack`
    is added to the number of words in this check, since a line may be one long word.
    """
    texts = [spaced(text, language) for text in texts]
    if language not in BY_CHARACTER and _lacks_blanks(texts, slack):
        if language == "en":
            raise DataError(f"{where}: must be English, got {texts[0][:40]!r}")
        longest = max(" ".join(texts).split(), key=len)
        problem = f"expected spaces between words, got {longest[:40]!r} in language {language!r}"
        raise DataError(f"{where}: {problem}; separate the words (only ja, yue and zh are split into characters)")
    return texts


def _lacks_blanks(texts: Iterable[str], slack: int = 0) -> bool:
    """Return whether texts are mostly in scripts without spaces and their words are too long to be single words."""
    line = " ".join(texts)
    if not _BLANKLESS.search(line):
        return False
    words = [letters for word in line.split() if (letters := _BLANKLESS.findall(word))]
    letters = [c for word in words for c in word if c.isalpha()]
    size = sum(1.5 if c >= "\u3000" else 1 for c in letters)
    return size > LETTERS * (len(words) + slack) and 2 * len(letters) > sum(map(str.isalpha, line))


@functools.lru_cache(maxsize=1 << 13)  # programs request the questions of a set many times
def split(text: str, language: str) -> tuple[tuple[str, ...], ...]:
    """Split `text` into sentences, each a tuple of words separated by white space.

    All words are kept in order: joined by single spaces they equal " ".join(text.split()).  In BY_CHARACTER languages
    each character is a word, and all characters except white space are kept.  An empty text has no sentences.
    `language` is one of LANGUAGES.
    """
    line = " ".join(text.split())
    if not line:
        return ()
    if language in BY_CHARACTER:
        return tuple(tuple(_units(piece)) for piece in _STOP.split(line) if piece.strip())
    pieces = [piece.split() for piece in _splitter(language).split(line)]
    merged: list[list[str]] = [pieces[0]]
    lettered = _lettered(pieces[0])  # of the last sentence
    for piece in pieces[1:]:
        size = _lettered(piece)
        if _continues(language, merged[-1], piece) or min(size, lettered) < 2:
            merged[-1].extend(piece)
            lettered += size
        else:
            merged.append(piece)
            lettered = size
    return tuple(tuple(piece) for piece in merged)
