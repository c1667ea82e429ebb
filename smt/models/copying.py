"""Names are copied: a word begun like a name that was read is favoured to go on like it, and to end where it ends.

Translation models begin a rare name right and then lose it ("Cajamark" for "Cajamarca").  A bonus on
the pieces that spell the name mends that without training: contextual biasing by shallow fusion (Zhao et al.,
Interspeech 2019), the source read so far being the context.

A name is a word with a capital, not the first of its sentence, of SHORTEST letters or more and without digits; it
counts once it is read, so streaming and batched decoding favour the same pieces.  The bonus is in nats: the model has
to be surer than that of another spelling ("Aristotle" for "Aristóteles").

A name may be spelt as it was read, without its accents ("Perú", Peru), and where its language inflects names without
its ending ("Napoleona", Napoleon; "Warszawy", Warszawa): all of these are favoured, and the model chooses among them.
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

VERSION = 2  # raise when the bonus falls on other pieces
SHORTEST = 3  # letters of a name
BEGUN = 2  # letters written before a word can be the beginning of a name
MOST = 20.0  # nats, the greatest bonus
_OPENING = re.compile(r"^\W+")
_EDGE = re.compile(r"^\W+|\W+$")


def check(bonus: float, beam: int = 1) -> None:
    """ConfigError for a bonus that is none, or that a beam would not give."""
    if not 0 <= bonus <= MOST:
        raise ConfigError(f"copy_bonus: must be 0 to {MOST:g} nats, got {bonus:g}")
    if bonus and beam > 1:
        raise ConfigError(f"copy_bonus: for greedy decoding, so beam must be 1, got {beam}")


def spellings(name: str, language: str = "") -> frozenset[str]:
    """Return the spellings that a translation may use for a name of a text in `language`."""
    found = {name}
    for ending, nominative in language_of(language).nominatives:
        if name.endswith(ending) and len(name) - len(ending) >= SHORTEST:
            found.add(name.removesuffix(ending) + nominative)
    return frozenset(found | {unmarked(spelling.translate(STROKES), "NFD") for spelling in found})


def is_name(word: str) -> bool:
    """Return whether a word may be a name: a capital, SHORTEST letters or more, no digit, no edge punctuation."""
    return len(word) >= SHORTEST and word[0].isupper() and not any(map(str.isdigit, word))


class Names:
    """The names of one sentence, each with the number of words to be read before it is known."""

    def __init__(self, words: Iterable[str] = (), language: str = "") -> None:
        """language: ISO 639-1 code of the source, for its endings; "" = any."""
        self.language = language
        self._known: list[tuple[int, str]] = []  # every spelling
        self.words = 0  # heard so far
        for word in words:
            self.hear(word)

    def hear(self, word: str) -> None:
        """Note that a word of the source was read."""
        self.words += 1
        name = _EDGE.sub("", normalise(word))
        if is_name(name) and self.words > 1:
            self._known += ((self.words, spelling) for spelling in spellings(name, self.language))

    def wrote(self, word: str, read: int) -> None:
        """Ignore a word of the translation: a name may come again."""

    def rests(self, begun: str, read: int) -> set[str]:
        """Return the continuations of the names among the first `read` words that begin so; "" = a name ends here."""
        begun = _OPENING.sub("", begun)
        if len(begun) < BEGUN:
            return set()
        return {name[len(begun) :] for at, name in self._known if at <= read and name.startswith(begun)}


class Begun(NamedTuple):
    """The open words of B sentences and how much of each source was read."""

    pieces: Sequence[Sequence[int]]  # numbers of the pieces of its open word; empty = none is open
    names: Sequence[Any]  # of its source: what the bonus follows there
    read: Sequence[int]  # source words


class Bonus(Protocol):
    """A bonus in a search that depends on the source words read."""

    def names(self, words: Iterable[str] = ()) -> Any:
        """Return the tracker of a sentence whose first `words` are read: it has `hear` and `wrote`, as Names."""

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """Add the bonus (nats) to scores (B, V), in place."""


def reading(names: Any, source: Iterator[str]) -> Iterator[str]:
    """The words of `source`; what a bonus follows (`Bonus.names`) learns each when it is read."""
    for word in source:
        names.hear(word)
        yield word


class Copier:
    """The bonus over V pieces that may be chosen."""

    def __init__(self, texts: Sequence[str], starts_word: np.ndarray, bonus: float, language: str = "") -> None:
        """`texts`: what each piece spells; `starts_word` (V,) bool.  language: ISO 639-1 code of the source."""
        self.texts, self.bonus, self.language = texts, bonus, language
        inner = [(text, piece) for piece, text in enumerate(texts) if not starts_word[piece] and text]
        self._place = dict(inner)
        self._longest = max(map(len, self._place), default=0)
        self._letters = torch.zeros(len(texts))
        self._letters[[piece for text, piece in inner if text[0].isalpha()]] = bonus
        self._places = lru_cache(maxsize=1 << 16)(self._spelling)

    @classmethod
    def of(cls, vocabulary: Vocabulary, bonus: float, language: str = "") -> Copier:
        """The bonus over all pieces of a vocabulary of ours.  ConfigError for one of a model trained elsewhere."""
        if not isinstance(vocabulary, Vocabulary):
            raise ConfigError("copy_bonus: for models trained here; this one has the vocabulary of another program")
        return cls(vocabulary.texts, vocabulary.starts_word, bonus, language)

    def names(self, words: Iterable[str] = ()) -> Names:
        """The names of a sentence, `words` of which are heard."""
        return Names(words, self.language)

    def _spelling(self, rest: str) -> tuple[int, ...]:
        """The pieces that spell a beginning of `rest`."""
        beginnings = (rest[:n] for n in range(1, min(len(rest), self._longest) + 1))
        return tuple(self._place[text] for text in beginnings if text in self._place)

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """Add the bonus (nats) to the pieces that spell a name of each row's sentence: scores (B, V), in place."""
        for row, (pieces, names, read) in enumerate(zip(*begun, strict=True)):
            if not pieces or not (rests := names.rests("".join(self.texts[p] for p in pieces), read)):
                continue
            if "" in rests:  # the word may end here: whatever is no letter gains against the letters
                scores[row] -= self._letters
            places = {place for rest in rests for place in self._places(rest)}
            scores[row, sorted(places)] += self.bonus
        return scores
