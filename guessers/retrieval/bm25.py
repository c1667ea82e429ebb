"""The BM25 guesser: every page is one document, all its training tossups together; the text so far is the query.

Two fields, the words of a page (stems without stop words) and its pairs of successive words.  A page d scores

    sum over tokens t of the text of  boost(t) idf(t) tf(t, d) / (tf(t, d) + k1 (1 - b + b |d| / mean |d|))
    idf(t) = ln(1 + (N - df(t) + 1/2) / (df(t) + 1/2))

with boost 1 for words and `pair_boost` for pairs, N pages, df(t) of them with t, |d| the tokens of d in the field.
This is BM25 as Lucene computes it since version 8 (Robertson and Zaragoza 2009, without the constant k1 + 1), but for
lengths, which Lucene stores in a byte and this file exactly.  A token that occurs twice in the text counts twice.
With `similarity: lucene` or `elasticsearch` lengths and scores are theirs (guessers/retrieval/lucene.py); on a model
counted with their analyzer (configs/train_guessers.yaml:bm25-lucene) this guesser is then the twin of
guessers/elastic/guesser.py.

A score is a sum over the words read, so the next word only adds its postings; nothing is read twice.  That loop is in
guessers/retrieval/kernel.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from guessers.retrieval.index import VERSION, Index, analyzer_of, tfidf_weights
from guessers.text import Profile
from sqa.core.errors import NotNegative, Positive, Share, checked
from sqa.core.types import Guess
from sqa.files.model_files import folder_digest, resolve_model

Similarity = Literal["exact", "lucene", "elasticsearch", "tfidf"]


@dataclass(frozen=True, slots=True)
@checked
class Bm25Config:
    """What `guesser: {name: bm25, ...}` takes."""

    model: str = "bm25"  # a bundled model (folder of data/models) or a folder
    k1: Positive = 0.6  # how slowly repeated words saturate, > 0
    b: Share = 0.9  # how much long pages are discounted, 0 (not) to 1 (in proportion)
    pair_boost: NotNegative = 0.5  # weight of the pairs of words, >= 0
    similarity: Similarity = "exact"  # lucene, elasticsearch: as these compute it; tfidf: guessers/retrieval/tfidf.py


@dataclass(frozen=True, slots=True)
class Bm25Training:
    """Keys of configs/train_guessers.yaml:bm25; see there for meanings."""

    kind: Literal["bm25"]
    output: Path
    folds: tuple[str, ...] = ("guesser", "buzzer", "dev")
    bonus: bool = False  # bonus parts too (guessers/bonus.py)
    analyzer: Literal["stems", "standard", "english"] = "stems"
    pair_min_count: int | None = None  # pairs seen less often are left out; None = no pairs
    texts: tuple[Path, ...] = ()  # your own, in place of the tossups: JSON lines {text, page, id?}


def weights(index: Index, config: Bm25Config) -> np.ndarray:
    """(postings,) float64, what one occurrence of the term adds to the page's score."""
    if config.similarity == "tfidf":
        return tfidf_weights(index, config.b, config.pair_boost)
    n = len(index.titles)
    weighted = np.empty(len(index.pages))
    for (terms, postings), boost in zip(index.fields(), (1.0, config.pair_boost), strict=True):
        pages, counts, frequency = index.pages[postings], index.counts[postings], np.diff(index.starts)[terms]
        if not len(pages):
            continue
        if config.similarity == "exact":
            length = np.bincount(pages, counts, minlength=n)
            norm = config.k1 * (1 - config.b + config.b * length / length.mean())
            idf = boost * np.log1p((n - frequency + 0.5) / (frequency + 0.5))  # (terms,)
            weighted[postings] = counts / (counts + norm[pages]) * np.repeat(idf, frequency)
        else:
            from guessers.retrieval import lucene

            boost *= config.k1 + 1 if config.similarity == "elasticsearch" else 1
            weighted[postings] = lucene.bm25_weights(counts, pages, frequency, n, config.k1, config.b, boost)
    return weighted


def best_indices(scores: np.ndarray, n: int) -> list[int]:
    """The indices of the `n` highest of scores (pages,) >= 0, best first, equal ones in order; those of 0 left out."""
    n = min(n, int(np.count_nonzero(scores)))
    if n < 1:
        return []
    candidates = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
    return candidates[np.argsort(-scores[candidates], kind="stable")][:n].tolist()


class Bm25Guesser:
    """Scores all pages by BM25 and names the best."""

    def __init__(self, index: Index, config: Bm25Config, digest: str = "") -> None:
        """`digest` names the index in the fingerprint."""
        self.index, self._config, self._digest = index, config, digest
        self._titles = index.titles
        self._word_ids = {word: id for id, word in enumerate(index.words)}
        self._pair_ids = dict(zip(index.pair_keys.tolist(), range(len(index.words), len(index.starts)), strict=False))
        self._starts: list[int] = index.starts.tolist()
        self._pages = np.ascontiguousarray(index.pages)
        self.weights = weights(index, config)  # (postings,)
        self._analyze = analyzer_of(index.analyzer)

    @classmethod
    def fit(
        cls,
        profiles: Iterable[Profile],
        pair_min_count: int | None = 2,
        config: Bm25Config | None = None,
        analyzer: str = "stems",
    ) -> Bm25Guesser:
        """Count the words of tossups, or of anything with a text and a page."""
        return cls(Index.of(profiles, pair_min_count, analyzer), config or Bm25Config())

    @classmethod
    def load(cls, folder: Path, config: Bm25Config | None = None) -> Bm25Guesser:
        """Read a model folder."""
        return cls(Index.load(folder), config or Bm25Config(), folder_digest(folder))

    def save(self, folder: Path) -> None:
        """Write the term counts; k1, b and the boost are not part of the model."""
        self.index.save(folder)

    @property
    def pages(self) -> frozenset[str]:
        """All pages it can name."""
        return frozenset(self._titles)

    def fingerprint(self) -> str:
        """sha256 of the index' files, the code version and the config's numbers."""
        numbers = (self._config.k1, self._config.b, self._config.pair_boost, self._config.similarity)
        return hashlib.sha256(f"bm25 {VERSION} {self._digest} {numbers!r}".encode()).hexdigest()

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """The best `n` pages with a score above 0 for each text. Scores are BM25, >= 0, growing with the text.

        This is the plain way: it reads each text from its start.  `guess_prefixes` is the fast one.
        """
        return [self._guess(line, n) for line in texts]

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """The guesses after each word; each word's postings are added once."""
        from guessers.retrieval.kernel import best_pages  # here, since numba takes a while to import

        n = min(n, len(self._titles))
        if n < 1:
            return [[] for _ in words]
        terms: list[int] = []
        ends = []
        for of_word in self.terms(words):
            terms += of_word
            ends.append(len(terms))
        pages, scores, listing, first, last = best_pages(
            np.array(terms, np.int64),
            np.array(ends, np.int64),
            self.index.starts,
            self._pages,
            self.weights,
            len(self._titles),
            n,
        )
        titles = map(self._titles.__getitem__, pages.tolist())
        listed = np.fromiter(Guess.many(titles, scores.tolist()), dtype=object, count=len(pages))
        listed = listed[listing].tolist()
        return [listed[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]

    def _guess(self, line: str, n: int) -> list[Guess]:
        all_scores = np.zeros(len(self._titles))
        for terms in self.terms(line.split()):
            for term in terms:
                start, end = self._starts[term], self._starts[term + 1]
                pages = self._pages[start:end]
                scores = all_scores.take(pages)
                scores += self.weights[start:end]
                all_scores[pages] = scores
        return [Guess(self._titles[page], float(all_scores[page])) for page in best_indices(all_scores, n)]

    def terms(self, words: Iterable[str]) -> Iterator[list[int]]:
        """The known terms of each word: its words and the pairs that end with one of them."""
        word_ids, pair_ids, n_words = self._word_ids, self._pair_ids, len(self._word_ids)
        last: int | None = None  # id of the word before, None if unknown
        for word in words:
            terms = []
            for stem in self._analyze(word):
                id = word_ids.get(stem)
                if id is not None:
                    if last is not None and (pair := pair_ids.get(last * n_words + id)) is not None:
                        terms.append(pair)
                    terms.append(id)
                last = id
            yield terms


def build(config: Bm25Config) -> Bm25Guesser:
    """The guesser of a config. Raises ConfigError for an unknown model."""
    return Bm25Guesser.load(resolve_model(config.model), config)
