"""Guesser that merges several guessers by reciprocal rank (Cormack, Clarke and Buettcher 2009).

    sqa run examples/guessers.yaml:fusion

A page scores the sum over guessers of 1 / (constant + rank), with ranks from 1.  A guesser that does not list the page
among its best 50 adds nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from sqa.core import GUESSERS, Guess, guesses_per_word
from sqa.pipeline import fingerprint_of, read_parts

DEPTH = 50  # number of guesses requested from each guesser


@dataclass(frozen=True)
class Fusion:
    """Merge the guesses of several guessers."""

    guessers: Annotated[tuple[dict[str, Any], ...], "two or more guessers, each as in `guesser:`"]
    constant: Annotated[float, "larger values reduce the weight of the first ranks"] = 5.0

    def __post_init__(self):
        """Raise ValueError or ConfigError for invalid keys."""
        if len(self.guessers) < 2 or self.constant < 0:
            raise ValueError("guessers: a fusion needs at least two guessers and a constant of at least 0")
        _ = self._configs

    @cached_property
    def _configs(self):
        return [part for guesser in self.guessers for part in read_parts(guesser=guesser)]

    @cached_property
    def _parts(self):
        return [GUESSERS.build(config.name, config.options) for config in self._configs]

    @property
    def pages(self):
        """All pages that any of the guessers can name, or None if a guesser does not know its pages."""
        named = [getattr(part, "pages", None) for part in self._parts]
        return None if None in named else frozenset().union(*named)

    def guess(self, texts, n):
        """Return the best `n` pages for each text; equal scores are ordered by title."""
        per_text = zip(*(part.guess(texts, DEPTH) for part in self._parts), strict=True)
        return [self._fused(lists, n) for lists in per_text]

    def guess_prefixes(self, words, n):
        """Return the best `n` pages after each word."""
        per_word = zip(*(guesses_per_word(part, words, DEPTH) for part in self._parts), strict=True)
        return [self._fused(lists, n) for lists in per_word]

    def _fused(self, lists, n):
        scores = {}
        for guesses in lists:
            for rank, guess in enumerate(guesses, start=1):
                scores[guess.page] = scores.get(guess.page, 0.0) + 1 / (self.constant + rank)
        ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Guess(page, score) for page, score in ordered[:n]]

    def fingerprint(self):
        """Return the fingerprints of the guessers."""
        pairs = zip(self._configs, self._parts, strict=True)
        return str([fingerprint_of(GUESSERS, config, part) for config, part in pairs])
