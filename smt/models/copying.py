"""Bonus for copying names: favours the spelling of a source name in a word that begins like the name.

Translation models often begin a rare name correctly and then misspell it ("Cajamark" for "Cajamarca").  A bonus on the
pieces that spell the name corrects this without training.  It is contextual biasing by shallow fusion (Zhao et al.,
Interspeech 2019) with the source read so far as the context.

A name is a capitalised word of at least SHORTEST letters, without digits, that does not begin its sentence.  It counts
once it has been read, so streaming and batched decoding favour the same pieces.  The bonus is in nats: the model writes
another spelling ("Aristotle" for "Aristóteles") only if it prefers that spelling by more than the bonus.

A name may be spelt as it was read or without its accents ("Perú", Peru).  In languages that inflect names it may also
lose its ending ("Napoleona", Napoleon; "Warszawy", Warszawa).  All of these spellings get the bonus, and the model
chooses among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from smt.models.vocab import Vocabulary, normalise
from sqa.core.answers import STROKES, unmarked
from sqa.core.errors import ConfigError
from sqa.core.languages import language_of

VERSION = 2  # increase when the favoured pieces change
SHORTEST = 3  # minimum number of letters of a name
BEGUN = 2  # minimum number of letters written before a word can match a name
MOST = 20.0  # maximum bonus, in nats
_OPENING = re.compile(r"^\W+")
_EDGE = re.compile(r"^\W+|\W+$")


def check(bonus: float, beam: int = 1) -> None:
    """Raise ConfigError for an invalid bonus, or for a bonus combined with beam search."""
    if not 0 <= bonus <= MOST:
        raise ConfigError(f"copy_bonus: must be 0 to {MOST:g} nats, got {bonus:g}")
    if bonus and beam > 1:
        raise ConfigError(f"copy_bonus: only for greedy decoding, so beam must be 1, got {beam}")


def spellings(name: str, language: str = "") -> frozenset[str]:
    """Return the spellings that a translation may use for a name of a text in `language`."""
    found = {name}
    for ending, nominative in language_of(language).nominatives:
        if name.endswith(ending) and len(name) - len(ending) >= SHORTEST:
            found.add(name.removesuffix(ending) + nominative)
    return frozenset(found | {unmarked(spelling.translate(STROKES), "NFD") for spelling in found})


def is_name(word: str) -> bool:
    """Return whether a word without edge punctuation may be a name: capital, at least SHORTEST letters, no digit."""
    return len(word) >= SHORTEST and word[0].isupper() and not any(map(str.isdigit, word))


class Names:
    """The names of one sentence, each with the number of words that must be read before it is known."""

    def __init__(self, words: Iterable[str] = (), language: str = "") -> None:
        """Read the first `words`; `language` is the source's ISO 639-1 code, for its endings ("" = any language)."""
        self.language = language
        self._known: list[tuple[int, str]] = []  # (words to read, spelling) for every spelling of every name
        self.words = 0  # words read so far
        for word in words:
            self.hear(word)

    def hear(self, word: str) -> None:
        """Record that a source word was read."""
        self.words += 1
        name = _EDGE.sub("", normalise(word))
        if is_name(name) and self.words > 1:
            self._known += ((self.words, spelling) for spelling in spellings(name, self.language))

    def wrote(self, word: str, read: int) -> None:
        """Ignore a word of the translation, because a name may occur again."""

    def rests(self, begun: str, read: int) -> set[str]:
        """Return the continuations of `begun` in names among the first `read` words; "" = a name ends here."""
        begun = _OPENING.sub("", begun)
        if len(begun) < BEGUN:
            return set()
        return {name[len(begun) :] for at, name in self._known if at <= read and name.startswith(begun)}


class Begun(NamedTuple):
    """The incomplete words of B sentences, and the number of source words read."""

    pieces: Sequence[Sequence[int]]  # piece ids of the incomplete word; empty if there is none
    names: Sequence[Any]  # tracker of each source sentence (`Bonus.names`)
    read: Sequence[int]  # source words read


class Bonus(Protocol):
    """A bonus that depends on the source words read."""

    def names(self, words: Iterable[str] = ()) -> Any:
        """Return the tracker of a sentence whose first `words` are read; like Names, it has `hear` and `wrote`."""

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """Add the bonus (nats) to scores (B, V), in place."""


def reading(names: Any, source: Iterator[str]) -> Iterator[str]:
    """Yield the words of `source`, reporting each word read to `names` (a tracker from `Bonus.names`)."""
    for word in source:
        names.hear(word)
        yield word


class Copier:
    """The copying bonus over V pieces."""

    def __init__(self, texts: Sequence[str], starts_word: np.ndarray, bonus: float, language: str = "") -> None:
        """Create the bonus from the pieces' texts and `starts_word` (V,); `language` is the source's ISO 639-1 code."""
        self.texts, self.bonus, self.language = texts, bonus, language
        inner = [(text, piece) for piece, text in enumerate(texts) if not starts_word[piece] and text]
        self._place = dict(inner)
        self._longest = max(map(len, self._place), default=0)
        self._letters = torch.zeros(len(texts))
        self._letters[[piece for text, piece in inner if text[0].isalpha()]] = bonus
        self._places = lru_cache(maxsize=1 << 16)(self._spelling)

    @classmethod
    def of(cls, vocabulary: Vocabulary, bonus: float, language: str = "") -> Copier:
        """Return the bonus over all pieces of a vocabulary; raises ConfigError for a model trained elsewhere."""
        if not isinstance(vocabulary, Vocabulary):
            raise ConfigError("copy_bonus: only for models trained with this program; this one has another vocabulary")
        return cls(vocabulary.texts, vocabulary.starts_word, bonus, language)

    def names(self, words: Iterable[str] = ()) -> Names:
        """Return the names of a sentence whose first `words` have been read."""
        return Names(words, self.language)

    def _spelling(self, rest: str) -> tuple[int, ...]:
        """Return the pieces that spell a beginning of `rest`."""
        beginnings = (rest[:n] for n in range(1, min(len(rest), self._longest) + 1))
        return tuple(self._place[text] for text in beginnings if text in self._place)

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """Add the bonus (nats) in place to scores (B, V), for pieces that spell a name of the row's sentence."""
        for row, (pieces, names, read) in enumerate(zip(*begun, strict=True)):
            if not pieces or not (rests := names.rests("".join(self.texts[p] for p in pieces), read)):
                continue
            if "" in rests:  # the word may end here, so every non-letter is favoured over letters
                scores[row] -= self._letters
            places = {place for rest in rests for place in self._places(rest)}
            scores[row, sorted(places)] += self.bonus
        return scores
