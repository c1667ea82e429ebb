"""The BM25 guesser: one document per page, with all its training tossups; the query is the text so far.

There are two fields: the words of a page (stems without stop words) and its pairs of successive words.  The score
of a page d is

    sum over tokens t of the text of  boost(t) idf(t) tf(t, d) / (tf(t, d) + k1 (1 - b + b |d| / mean |d|))
    idf(t) = ln(1 + (N - df(t) + 1/2) / (df(t) + 1/2))

with boost 1 for words and `pair_boost` for pairs.  N is the number of pages, df(t) the number of pages with t, and
|d| the number of tokens of d in the field.  This is BM25 as in Lucene since version 8 (Robertson and Zaragoza 2009,
without the constant k1 + 1), except that lengths are exact while Lucene stores them in a byte.  A token that occurs
twice in the text counts twice.

With `similarity: lucene` or `elasticsearch`, lengths and scores are those of Lucene or Elasticsearch
(guessers/retrieval/lucene.py).  On a model counted with their analyzer (configs/train_guessers.yaml:bm25-lucene)
this guesser is then the twin of guessers/elastic/guesser.py.

A score is a sum over the words read, so the next word only adds its postings.  Scores never fall, so the worst of
the best pages is a bound for the next word.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from guessers import text
from sqa.core import DataError, File, Guess, NotNegative, Positive, Share, checked
from sqa.files import model_files

VERSION = 1  # version of the code that computes guesses; raise it when guesses change
_STEPS, _COUNTS = "page_steps", "counts"

Analyzer = Callable[[str], tuple[str, ...]]  # returns the terms of a word
ANALYZERS = ("stems", "standard", "english")  # our own analyzer, and Lucene's two
Similarity = Literal["exact", "lucene", "elasticsearch", "tfidf"]


@dataclass(frozen=True, slots=True)
@checked
class Bm25Config:
    """Config of `guesser: {name: bm25, ...}`."""

    model: Annotated[File, "a bundled model (folder of data/models) or a folder"] = "bm25"
    k1: Annotated[Positive, "how slowly repeated words saturate, > 0"] = 0.6
    b: Annotated[Share, "how much long pages are discounted, from 0 (not at all) to 1 (in proportion)"] = 0.9
    pair_boost: Annotated[NotNegative, "weight of the pairs of words, >= 0"] = 0.5
    similarity: Annotated[Similarity, "lucene, elasticsearch: as in that program; tfidf: retrieval/tfidf.py"] = "exact"


def analyzer_of(name: str) -> Analyzer:
    """Return the analyzer with a name in ANALYZERS; Lucene's analyzers are imported on demand."""
    if name == "stems":
        return text.content_stems
    from guessers.retrieval import lucene

    return lucene.standard if name == "standard" else lucene.english


@dataclass(frozen=True, eq=False)
class Index:
    """Term counts by page.  Terms 0..W-1 are words, later terms are pairs (key: first word * W + second word)."""

    titles: tuple[str, ...]  # sorted
    words: tuple[str, ...]  # sorted
    pair_keys: np.ndarray  # (pairs,) int64, increasing
    starts: np.ndarray  # (terms + 1,) int64, start of each term's postings
    pages: np.ndarray  # (postings,) int64, increasing within a term
    counts: np.ndarray  # (postings,) int64, >= 1
    analyzer: str = "stems"  # a key of ANALYZERS
    weights: dict[Bm25Config, np.ndarray] = field(default_factory=dict)  # `weights` of each config in use

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """The term of each word."""
        return {word: id for id, word in enumerate(self.words)}

    @cached_property
    def pair_ids(self) -> dict[int, int]:
        """The term of each pair, by its key."""
        return dict(zip(self.pair_keys.tolist(), range(len(self.words), len(self.starts)), strict=False))

    @cached_property
    def bounds(self) -> list[int]:
        """`starts` as a list, whose items are read faster."""
        return self.starts.tolist()

    def fields(self) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """Return (terms, postings) of the words and of the pairs."""
        words, at = len(self.words), int(self.starts[len(self.words)])
        return (slice(0, words), slice(0, at)), (slice(words, None), slice(at, len(self.pages)))

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""
        words = len(self.words)
        first, second = np.divmod(self.pair_keys, max(words, 1))
        tensors = {
            "titles": model_files.pack_strings(self.titles),
            "words": model_files.pack_strings(self.words),
            "pairs_per_word": model_files.pack_integers(np.bincount(first, minlength=words)),
            "pair_seconds": model_files.pack_integers(second),
            "pages_per_term": model_files.pack_integers(np.diff(self.starts)),
            _STEPS: model_files.pack_integers(page_steps(self.starts, self.pages)),
            _COUNTS: model_files.pack_integers(self.counts),
        }
        model_files.write_tensors(folder, tensors, {"kind": "bm25", "version": VERSION, "analyzer": self.analyzer})

    @classmethod
    def load(cls, folder: Path) -> Index:
        """Read a folder written by `save`; raises DataError if it is damaged."""
        tensors, config = model_files.read_tensors(folder, "bm25", VERSION)
        analyzer = config.get("analyzer", "stems")
        if not isinstance(analyzer, str) or analyzer not in ANALYZERS:
            expected = f"analyzer must be one of {', '.join(ANALYZERS)}, got {analyzer!r}"
            raise DataError(f"{folder}: {expected}; train the model again")
        try:
            titles, words = model_files.unpack_strings(tensors["titles"]), model_files.unpack_strings(tensors["words"])
            names = ("pairs_per_word", "pair_seconds", "pages_per_term", _STEPS, _COUNTS)
            per_word, second, frequency, steps, counts = (model_files.unpack_integers(tensors[name]) for name in names)
        except (KeyError, ValueError) as error:
            raise DataError(f"{folder}: the model is damaged ({error}); restore or train it again") from error
        fits = len(steps) == len(counts) == frequency.sum() and len(frequency) == len(words) + len(second)
        fits = fits and len(per_word) == len(words) and per_word.sum() == len(second)
        starts, pages = postings_of(steps, frequency) if fits else (frequency, frequency)
        fits = fits and pages.max(initial=-1) < len(titles) and second.max(initial=-1) < len(words)
        fits = fits and min(frequency.min(initial=1), counts.min(initial=1)) > 0
        if not (fits and all(list(names) == sorted(set(names)) for names in (titles, words))):
            raise DataError(f"{folder}: the model's tables do not fit together; restore or train it again")
        first = np.repeat(np.arange(len(words)), per_word)
        keys = first * len(words) + second
        return cls(tuple(titles), tuple(words), keys, starts, pages, counts, analyzer)


def page_steps(starts: np.ndarray, pages: np.ndarray) -> np.ndarray:
    """Return each posting's page minus the previous page of the same term; these differences compress well."""
    steps = np.diff(pages, prepend=0)
    firsts = starts[:-1]
    steps[firsts] = pages[firsts]
    return steps


def postings_of(steps: np.ndarray, frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (starts, pages) of the terms with `frequency` postings each; the inverse of `page_steps`."""
    starts = np.concatenate([[0], np.cumsum(frequency)])
    running = np.cumsum(steps)
    before = np.concatenate([[0], running])[starts[:-1]]  # sum of the steps of all earlier terms
    return starts, running - np.repeat(before, frequency)


@lru_cache(maxsize=2)
def shared_index(folder: Path, digest: str) -> Index:
    """Return the index of a folder, which the guessers of this process share; `digest` is that of its files."""
    return Index.load(folder)


def weights(index: Index, config: Bm25Config) -> np.ndarray:
    """Return, for each posting, the contribution of one occurrence of the term in the text to the page's score."""
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


def tfidf_weights(index: Index, b: float, pair_boost: float) -> np.ndarray:
    """Return, for each posting, its TF-IDF contribution (guessers/retrieval/tfidf.py) to the page's score."""
    pages, frequency = len(index.titles), np.diff(index.starts)
    idf = 1 + np.log(pages / frequency)  # (terms,)
    idf[len(index.words) :] *= pair_boost
    idf = np.repeat(idf, frequency)
    vector = idf * (1 + np.log(index.counts))
    length = np.sqrt(np.bincount(index.pages, vector * vector, minlength=pages))
    return idf * vector / length[index.pages] ** b


def best_indices(scores: np.ndarray, n: int, least: float = math.ulp(0.0)) -> np.ndarray:
    """Return the indices of the `n` highest scores, highest first, ties by index.

    Scores below `least`, which must be above 0, are left out.  If at least `n` scores are known to reach `least`, few
    scores remain to be sorted.
    """
    indices = (scores >= least).nonzero()[0]
    high = scores[indices]
    if len(indices) > 4 * n:  # a partition is linear in the number of scores
        kept = high >= np.partition(high, -n)[-n]
        indices, high = indices[kept], high[kept]
    return indices[(-high).argsort(kind="stable")[:n]]


class Bm25Guesser:
    """Guesser that scores all pages by BM25."""

    def __init__(self, index: Index, config: Bm25Config, digest: str = "") -> None:
        """Create the guesser; `digest` identifies the index in the fingerprint."""
        self.index, self._config, self._digest = index, config, digest
        self._titles = index.titles
        self._pages = np.ascontiguousarray(index.pages)
        if config not in index.weights:
            index.weights[config] = weights(index, config)
        self.weights = index.weights[config]  # (postings,)
        self._analyze = analyzer_of(index.analyzer)

    @classmethod
    def load(cls, folder: Path, config: Bm25Config | None = None) -> Bm25Guesser:
        """Return the guesser of a model folder."""
        digest = model_files.folder_digest(folder)
        return cls(shared_index(folder, digest), config or Bm25Config(), digest)

    def save(self, folder: Path) -> None:
        """Write the term counts; k1, b and the boost are not part of the model."""
        self.index.save(folder)

    @property
    def pages(self) -> frozenset[str]:
        """All pages that the guesser can name."""
        return frozenset(self._titles)

    def fingerprint(self) -> str:
        """Return the sha256 of the index's files, the code version and the config's numbers."""
        numbers = (self._config.k1, self._config.b, self._config.pair_boost, self._config.similarity)
        return hashlib.sha256(f"bm25 {VERSION} {self._digest} {numbers!r}".encode()).hexdigest()

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages with a score above 0 for each text.  BM25 scores are >= 0 and grow with the text.

        This simple method reads each text from its start; `guess_prefixes` is the fast path.
        """
        return [self._guess(line, n) for line in texts]

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the guesses after each word; each word's postings are added once."""
        scores, best, least = np.zeros(len(self._titles)), np.empty(0, np.int64), math.ulp(0.0)
        pages, high, ends = [best], [scores[best]], []
        for terms in self.terms(words):
            if terms:
                self._add(terms, scores)
                best = best_indices(scores, n, least)
                pages.append(best)
                high.append(scores.take(best))
                if len(best) == n > 0:
                    least = high[-1][-1]
            ends.append(len(pages))
        guesses = self._guesses(np.concatenate(pages), np.concatenate(high))
        bounds = [0, *accumulate(map(len, pages))]
        return [guesses[bounds[end - 1] : bounds[end]] for end in ends]

    def _guesses(self, pages: np.ndarray, scores: np.ndarray) -> list[Guess]:
        """Return a guess for each page and its score; most equal guesses share an object."""
        order = scores.argsort()
        pages, scores = pages[order], scores[order]
        new = np.append(True, (pages[1:] != pages[:-1]) | (scores[1:] != scores[:-1]))[: len(order)]
        titles = map(self._titles.__getitem__, pages[new].tolist())
        guesses = np.fromiter(Guess.many(titles, scores[new].tolist()), dtype=object)
        return list(guesses[new.cumsum()[order.argsort()] - 1])

    def _guess(self, line: str, n: int) -> list[Guess]:
        scores = np.zeros(len(self._titles))
        for terms in self.terms(line.split()):
            self._add(terms, scores)
        return [Guess(self._titles[page], float(scores[page])) for page in best_indices(scores, n).tolist()]

    def _add(self, terms: Iterable[int], scores: np.ndarray) -> None:
        """Add the weights of the terms' postings to the pages' scores, one term at a time."""
        bounds = self.index.bounds
        for term in terms:
            postings = slice(bounds[term], bounds[term + 1])
            scores[self._pages[postings]] += self.weights[postings]

    def terms(self, words: Iterable[str]) -> Iterator[list[int]]:
        """Yield the known terms of each word: its words and the pairs that end with one of them."""
        word_ids, pair_ids, n_words = self.index.word_ids, self.index.pair_ids, len(self.index.words)
        last: int | None = None  # id of the previous word, None if unknown
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
    """Return the guesser of a config; raises ConfigError for an unknown model."""
    return Bm25Guesser.load(model_files.resolve_model(config.model), config)
