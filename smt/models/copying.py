"""Names are copied: a word begun like a name that was read is favoured to go on like it, and to end where it ends.

Translation models begin a rare name right and then lose it ("Kalalisut" for "Kalaallisut", "Titicacaca").  A bonus on
the pieces that spell the name mends that without training: contextual biasing by shallow fusion (Zhao et al.,
Interspeech 2019), the source read so far being the context.

A name is a word with a capital, not the first of its sentence, of SHORTEST letters or more and without digits; it
counts once it is read, so streaming and batched decoding favour the same pieces.  The bonus is in nats: the model has
to be surer than that of another spelling ("Aristotle" for "Aristóteles").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from smt.models.vocab import Vocabulary, normalise
from sqa.core.errors import ConfigError

VERSION = 1  # raise when the bonus falls on other pieces
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


class Names:
    """The names of one sentence, each with the number of words to be read before it is known."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._known: list[tuple[int, str]] = []
        self.words = 0  # heard so far
        for word in words:
            self.hear(word)

    def hear(self, word: str) -> None:
        """One more word of the source."""
        self.words += 1
        name = _EDGE.sub("", normalise(word))
        named = len(name) >= SHORTEST and name[0].isupper() and not any(map(str.isdigit, name))
        if named and self.words > 1:
            self._known.append((self.words, name))

    def heard(self, source: Iterator[str]) -> Iterator[str]:
        """The words of `source`, each heard when it is read."""
        for word in source:
            self.hear(word)
            yield word

    def rests(self, begun: str, read: int) -> set[str]:
        """How the names among the first `read` words that begin so go on; "" = one ends here."""
        begun = _OPENING.sub("", begun)
        if len(begun) < BEGUN:
            return set()
        return {name[len(begun) :] for at, name in self._known if at <= read and name.startswith(begun)}


class Begun(NamedTuple):
    """What B sentences have begun to write, and what of them was read; an item for each."""

    pieces: Sequence[Sequence[int]]  # numbers of the pieces of its open word; empty = none is open
    names: Sequence[Names]  # of its source
    read: Sequence[int]  # source words


class Copier:
    """The bonus over V pieces that may be chosen."""

    def __init__(self, texts: Sequence[str], starts_word: np.ndarray, numbers: np.ndarray, bonus: float) -> None:
        """`texts`: what each piece spells, by its number; `starts_word`, `numbers` (V,) are of those to choose from."""
        check(bonus)
        self.texts, self.bonus = texts, bonus
        inner = [(texts[n], place) for place, n in enumerate(numbers) if not starts_word[place] and texts[n]]
        self._place = dict(inner)
        self._longest = max(map(len, self._place), default=0)
        self._letters = torch.zeros(len(numbers))
        self._letters[[place for text, place in inner if text[0].isalpha()]] = bonus
        self._places = lru_cache(maxsize=1 << 16)(self._spelling)

    @classmethod
    def of(cls, vocabulary: Vocabulary, bonus: float) -> Copier:
        """The bonus over all pieces of a vocabulary of ours.  ConfigError for one of a model trained elsewhere."""
        if not isinstance(vocabulary, Vocabulary):
            raise ConfigError("copy_bonus: for models trained here; this one has the vocabulary of another program")
        return cls(vocabulary.texts, vocabulary.starts_word, np.arange(vocabulary.size), bonus)

    def _spelling(self, rest: str) -> tuple[int, ...]:
        """The pieces that spell a beginning of `rest`."""
        beginnings = (rest[:n] for n in range(1, min(len(rest), self._longest) + 1))
        return tuple(self._place[text] for text in beginnings if text in self._place)

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """scores (B, V), changed in place: the bonus (nats) is on what spells a name of the row's sentence."""
        for row, (pieces, names, read) in enumerate(zip(*begun, strict=True)):
            if not pieces or not (rests := names.rests("".join(self.texts[p] for p in pieces), read)):
                continue
            if "" in rests:  # the word may end here: whatever is no letter gains against the letters
                scores[row] -= self._letters
            places = {place for rest in rests for place in self._places(rest)}
            scores[row, sorted(places)] += self.bonus
        return scores
