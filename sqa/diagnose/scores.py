"""Interface of models that score the words of a translation, and the cache of scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from sqa.diagnose.kept import kept
from sqa.files.store import digest

Words = Sequence[str]


class WordScores(NamedTuple):
    """Scores of one translation: one natural logarithm per target word."""

    given: tuple[float, ...]  # ln p(word | source, words before)
    alone: tuple[float, ...]  # ln p(word | words before), without the source
    short: tuple[float, ...]  # >= 0, ln p of the likeliest pieces in the word's place minus ln p of its own pieces


class WordScorer(Protocol):
    """Interface of a scoring model, as used by sqa/diagnose/detector.py."""

    group: str  # group in `sqa.diagnose.signals.GROUPS` whose weights were trained with these scores

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Return the scores of each pair of source and target words."""

    def fingerprint(self) -> str:
        """Return a hash of everything that affects the scores."""


class KeptScorer:
    """A scorer that caches its scores in a file, so that the same texts are scored only once."""

    def __init__(self, scorer: WordScorer, path: Path) -> None:
        self.group, self._scorer, self._path = scorer.group, scorer, path

    def fingerprint(self) -> str:
        """Return the fingerprint of the scorer."""
        return self._scorer.fingerprint()

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Return the scores of each pair of source and target words, from the file if it contains them."""
        key = digest([self.fingerprint(), [[list(x), list(y)] for x, y in pairs]])
        return kept(self._path, "scores", key, list[WordScores], lambda: self._scorer.score(pairs))
