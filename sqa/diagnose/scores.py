"""What a model says of the words of a translation that it may not have made itself, and where that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from sqa.diagnose.kept import kept
from sqa.files.store import digest

Words = Sequence[str]


class WordScores(NamedTuple):
    """One number per target word, natural logarithms."""

    given: tuple[float, ...]  # ln p(word | source, words before)
    alone: tuple[float, ...]  # ln p(word | words before), nothing read
    short: tuple[float, ...]  # >= 0, how much less likely its pieces are than the likeliest ones in their places


class WordScorer(Protocol):
    """What sqa/diagnose/detector.py asks of a model."""

    group: str  # of `sqa.diagnose.signals.GROUPS`: whose weights know its scores

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Scores of each (source words, target words)."""
        ...

    def fingerprint(self) -> str:
        """Hash of everything that decides the scores."""
        ...


class KeptScorer:
    """A scorer whose numbers lie in a file: the same texts are scored once."""

    def __init__(self, scorer: WordScorer, path: Path) -> None:
        self.group, self._scorer, self._path = scorer.group, scorer, path

    def fingerprint(self) -> str:
        """Of the scorer."""
        return self._scorer.fingerprint()

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Scores of each (source words, target words), read where they are there."""
        key = digest([self.fingerprint(), [[list(x), list(y)] for x, y in pairs]])
        return kept(self._path, "scores", key, list[WordScores], lambda: self._scorer.score(pairs))
