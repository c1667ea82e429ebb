"""Reciprocal rank fusion of several guessers (Cormack, Clarke and Buettcher 2009).

    guesser: {name: fusion, guessers: [{name: bm25}, {name: gru}]}

A page scores the sum over guessers of 1 / (constant + rank), with ranks from 1; a guesser that does not list the page
among its best 50 adds nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from sqa.core.registry import GUESSERS
from sqa.core.schema import NotNegative, checked
from sqa.core.types import ChecksTexts, Guess, KnowsPages, guesses_per_word
from sqa.files.store import digest
from sqa.pipeline.config import ComponentConfig
from sqa.pipeline.parts import fingerprint_of

VERSION = 2  # increase when the guesses change
DEPTH = 50  # number of guesses requested from each guesser


@dataclass(frozen=True, slots=True)
@checked
class FusionConfig:
    """Options of `guesser: {name: fusion, ...}`."""

    guessers: Annotated[tuple[ComponentConfig, ...], "two or more guessers"]
    constant: Annotated[
        NotNegative, "constant of the reciprocal rank; larger values reduce the weight of the first ranks"
    ] = 5.0

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        return [] if len(self.guessers) > 1 else [f"guessers: a fusion needs at least two, got {len(self.guessers)}"]


class FusionGuesser:
    """Several guessers whose lists are merged by reciprocal rank."""

    def __init__(self, parts: Sequence[tuple[ComponentConfig, Any]], constant: float = 5.0) -> None:
        self._parts, self._constant = list(parts), constant

    @property
    def pages(self) -> frozenset[str] | None:
        """All pages that any of the guessers can name, or None if a guesser does not know its pages."""
        named = [part.pages for _, part in self._parts if isinstance(part, KnowsPages) and part.pages is not None]
        return frozenset().union(*named) if len(named) == len(self._parts) else None

    def check_texts(self, texts: Iterable[Sequence[str]]) -> None:
        """Pass all texts to the guessers that have `check_texts`."""
        wanting = [part for _, part in self._parts if isinstance(part, ChecksTexts)]
        kept = list(texts) if wanting else []
        for part in wanting:
            part.check_texts(kept)

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages for each text; equal scores are ordered by title."""
        per_text = (part.guess(texts, DEPTH) for _, part in self._parts)
        return [self._fused(lists, n) for lists in zip(*per_text, strict=True)]

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages after each word."""
        per_word = (guesses_per_word(part, words, DEPTH) for _, part in self._parts)
        return [self._fused(lists, n) for lists in zip(*per_word, strict=True)]

    def _fused(self, lists: Iterable[Sequence[Guess]], n: int) -> list[Guess]:
        scores: dict[str, float] = {}
        for guesses in lists:
            for rank, guess in enumerate(guesses, start=1):
                scores[guess.page] = scores.get(guess.page, 0.0) + 1 / (self._constant + rank)
        ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Guess(page, score) for page, score in ordered[: max(n, 0)]]

    def fingerprint(self) -> str:
        """Return a digest of the guessers, the constant and the version of the code."""
        parts = [[config.name, fingerprint_of(GUESSERS, config, part)] for config, part in self._parts]
        return digest(["fusion", VERSION, self._constant, parts])


def build(config: FusionConfig) -> FusionGuesser:
    """Build the fusion and its guessers."""
    return FusionGuesser([(p, GUESSERS.build(p.name, p.options)) for p in config.guessers], config.constant)
