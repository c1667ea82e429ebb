"""What a translation model says of the words of a translation that it may not have made itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sqa.core.registry import Registry

# what scores the words of a translation; each is built from the name of a bundled model, such as "es-en"
SCORERS = Registry("scorer", {"transformer": "smt.models.scoring:build"})

Words = Sequence[str]


class WordScores(NamedTuple):
    """One number per target word, natural logarithms."""

    given: tuple[float, ...]  # ln p(word | source, words before)
    alone: tuple[float, ...]  # ln p(word | words before), nothing read
    short: tuple[float, ...]  # >= 0, how much less likely its pieces are than the likeliest ones in their places


class WordScorer(Protocol):
    """What sqa/diagnose/detector.py asks of a translation model."""

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Scores of each (source words, target words)."""
        ...

    def fingerprint(self) -> str:
        """Hash of everything that decides the scores."""
        ...
