"""The BM25 guesser: every page is one document, all its training tossups together; the text so far is the query.

Two fields, the words of a page (stems without stop words) and its pairs of successive words.  A page d scores

    sum over tokens t of the text of  boost(t) idf(t) tf(t, d) / (tf(t, d) + k1 (1 - b + b |d| / mean |d|))
    idf(t) = ln(1 + (N - df(t) + 1/2) / (df(t) + 1/2))

with boost 1 for words and `pair_boost` for pairs, N pages, df(t) of them with t, |d| the tokens of d in the field.
This is BM25 as Lucene computes it since version 8 (Robertson and Zaragoza 2009, without the constant k1 + 1), but for
lengths, which Lucene stores in a byte and this file exactly.  A token that occurs twice in the text counts twice.

A score is a sum over the words read, so the next word only adds its postings; nothing is read twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import eq
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from guessers import text
from sqa.errors import ConfigError, DataError
from sqa.models import (
    folder_digest,
    pack_integers,
    pack_strings,
    read_tensors,
    resolve_model,
    unpack_integers,
    unpack_strings,
    write_tensors,
)
from sqa.types import Guess

VERSION = 1  # of the code that turns words into guesses; raise it when guesses change


@dataclass(frozen=True, slots=True)
class Bm25Config:
    """What `guesser: {name: bm25, ...}` takes."""

    model: str = "bm25"  # a bundled model (folder of data/models) or a folder
    k1: float = 0.6  # how slowly repeated words saturate, > 0
    b: float = 0.9  # how much long pages are discounted, 0 (not) to 1 (in proportion)
    pair_boost: float = 0.5  # weight of the pairs of words, >= 0

    def __post_init__(self) -> None:
        problems = [] if self.k1 > 0 else [f"k1: must be > 0, got {self.k1}"]
        problems += [] if 0 <= self.b <= 1 else [f"b: must be in [0, 1], got {self.b}"]
        problems += [] if self.pair_boost >= 0 else [f"pair_boost: must be >= 0, got {self.pair_boost}"]
        if problems:
            raise ConfigError(problems)


@dataclass(frozen=True, slots=True)
class Bm25Training:
    """Keys of configs/guesser_bm25.yaml; see there for meanings."""

    kind: Literal["bm25"]
    output: Path
    folds: tuple[str, ...]
    pair_min_count: int  # pairs seen less often are left out


class Profile(Protocol):
    """What a page is learnt from."""

    @property
    def text(self) -> str: ...
    @property
    def page(self) -> str | None: ...


@dataclass(frozen=True)
class Index:
    """Term counts by page. Terms 0..W-1 are words, the others pairs (their key: first word * W + second word)."""

    titles: tuple[str, ...]  # sorted
    words: tuple[str, ...]  # sorted
    pair_keys: np.ndarray  # (pairs,) int64, increasing
    starts: np.ndarray  # (terms + 1,) int64, where a term's postings begin
    pages: np.ndarray  # (postings,) int64, increasing within a term
    counts: np.ndarray  # (postings,) int64, >= 1

    @classmethod
    def of(cls, tossups: Iterable[Profile], pair_min_count: int) -> Index:
        """Count the tossups that have a page."""
        by_page: dict[str, Counter[str | tuple[str, str]]] = {}
        total: Counter[str | tuple[str, str]] = Counter()
        for tossup in tossups:
            if tossup.page is not None:
                stems = [stem for word in tossup.text.split() for stem in text.content_stems(word)]
                terms = Counter([*stems, *pairwise(stems)])
                by_page.setdefault(tossup.page, Counter()).update(terms)
                total.update(terms)
        titles, words = sorted(by_page), sorted(term for term in total if isinstance(term, str))
        word_id = {word: id for id, word in enumerate(words)}
        keys = sorted(
            word_id[term[0]] * len(words) + word_id[term[1]]
            for term, count in total.items()
            if isinstance(term, tuple) and count >= pair_min_count
        )
        pair_id = {key: len(words) + i for i, key in enumerate(keys)}
        rows: list[tuple[int, int, int]] = []
        for page, title in enumerate(titles):
            for term, count in by_page[title].items():
                if isinstance(term, str):
                    rows.append((word_id[term], page, count))
                elif (id := pair_id.get(word_id[term[0]] * len(words) + word_id[term[1]])) is not None:
                    rows.append((id, page, count))
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        frequency = np.bincount(table[:, 0], minlength=len(words) + len(keys))
        starts = np.concatenate([[0], np.cumsum(frequency)])
        return cls(tuple(titles), tuple(words), np.array(keys, np.int64), starts, table[:, 1], table[:, 2])

    def weights(self, config: Bm25Config) -> np.ndarray:
        """(postings,) float64, what one occurrence of the term adds to the page's score."""
        n, words = len(self.titles), len(self.words)
        frequency = np.diff(self.starts)
        idf = np.log1p((n - frequency + 0.5) / (frequency + 0.5))  # (terms,)
        idf[words:] *= config.pair_boost
        weights = np.empty(len(self.pages))
        for field in (slice(0, self.starts[words]), slice(self.starts[words], len(self.pages))):
            pages, counts = self.pages[field], self.counts[field].astype(np.float64)
            if len(pages):
                length = np.bincount(pages, counts, minlength=n)
                norm = config.k1 * (1 - config.b + config.b * length / length.mean())
                weights[field] = counts / (counts + norm[pages])
        return weights * np.repeat(idf, frequency)

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""
        words = len(self.words)
        deltas = np.diff(self.pages, prepend=0)
        firsts = self.starts[:-1]
        deltas[firsts] = self.pages[firsts]
        first, second = np.divmod(self.pair_keys, max(words, 1))
        tensors = {
            "titles": pack_strings(self.titles),
            "words": pack_strings(self.words),
            "pairs_per_word": pack_integers(np.bincount(first, minlength=words)),
            "pair_seconds": pack_integers(second),
            "pages_per_term": pack_integers(np.diff(self.starts)),
            "page_steps": pack_integers(deltas),
            "counts": pack_integers(self.counts),
        }
        write_tensors(folder, tensors, {"kind": "bm25", "version": VERSION})

    @classmethod
    def load(cls, folder: Path) -> Index:
        """Read what `save` wrote; DataError if it is damaged."""
        tensors, _ = read_tensors(folder, "bm25", VERSION)
        try:
            titles, words = unpack_strings(tensors["titles"]), unpack_strings(tensors["words"])
            names = ("pairs_per_word", "pair_seconds", "pages_per_term", "page_steps", "counts")
            per_word, second, frequency, deltas, counts = (unpack_integers(tensors[name]) for name in names)
        except KeyError as error:
            raise DataError(f"{folder}: the model lacks {error}; restore or train it again") from error
        starts = np.concatenate([[0], np.cumsum(frequency)])
        fits = len(deltas) == len(counts) == starts[-1] and len(starts) == len(words) + len(second) + 1
        if not (fits and len(per_word) == len(words) and per_word.sum() == len(second)):
            raise DataError(f"{folder}: the model's tables do not fit together; restore or train it again")
        running = np.cumsum(deltas)
        before = np.concatenate([[0], running])[starts[:-1]]  # the sum of all steps of earlier terms
        pages = running - np.repeat(before, frequency)
        first = np.repeat(np.arange(len(words)), per_word)
        return cls(tuple(titles), tuple(words), first * len(words) + second, starts, pages, counts)


class Bm25Guesser:
    """Scores all pages by BM25 and names the best."""

    def __init__(self, index: Index, config: Bm25Config, digest: str = "") -> None:
        """`digest` names the index in the fingerprint."""
        self.index, self._config, self._digest = index, config, digest
        self._titles = index.titles
        self._word_ids = {word: id for id, word in enumerate(index.words)}
        self._pair_ids = dict(zip(index.pair_keys.tolist(), range(len(index.words), len(index.starts)), strict=False))
        self._starts: list[int] = index.starts.tolist()
        self._pages = index.pages
        self._weights = index.weights(config)

    @classmethod
    def fit(cls, tossups: Iterable[Profile], pair_min_count: int = 2, config: Bm25Config | None = None) -> Bm25Guesser:
        """Count the tossups' words."""
        return cls(Index.of(tossups, pair_min_count), config or Bm25Config())

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
        numbers = (self._config.k1, self._config.b, self._config.pair_boost)
        return hashlib.sha256(f"bm25 {VERSION} {self._digest} {numbers!r}".encode()).hexdigest()

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """The best `n` pages with a score above 0 for each text. Scores are BM25, >= 0, growing with the text.

        This is the plain way: it reads each text from its start and sorts all pages.  `guess_prefixes` is the fast one.
        """
        return [self._guess(line, n) for line in texts]

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """The guesses after each word; each word's postings are added once."""
        reading = _Reading(self)
        best = _Best(self._titles, reading.scores, n)
        steps = []
        for word in words:
            for pages, scores in reading.read(word):
                best.gain(pages, scores)
            steps.append(best.guesses())
        return steps

    def _guess(self, line: str, n: int) -> list[Guess]:
        reading = _Reading(self)
        for word in line.split():
            for _ in reading.read(word):
                pass
        scores = reading.scores
        order = np.lexsort((np.arange(len(scores)), -scores))[:n]  # equal scores by page number, that is by title
        return [Guess(self._titles[page], float(scores[page])) for page in order.tolist() if scores[page] > 0]


class _Reading:
    """A text being read: the score of every page so far, and the last word for the next pair."""

    def __init__(self, guesser: Bm25Guesser) -> None:
        self._guesser = guesser
        self._last: int | None = None  # id of the token before, None if unknown
        self.scores = np.zeros(len(guesser._titles))

    def read(self, word: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Add a word's postings; yields, for each token of it, the pages that gained and their new scores."""
        guesser = self._guesser
        for stem in text.content_stems(word):
            id = guesser._word_ids.get(stem)
            if id is not None:
                if self._last is not None:
                    pair = guesser._pair_ids.get(self._last * len(guesser._word_ids) + id)
                    if pair is not None:
                        self._add(pair)  # pages with the pair have the word too: they are among those yielded
                yield self._add(id)
            self._last = id

    def _add(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        start, end = self._guesser._starts[term], self._guesser._starts[term + 1]
        pages = self._guesser._pages[start:end]
        scores = self.scores.take(pages)
        scores += self._guesser._weights[start:end]
        self.scores[pages] = scores
        return pages, scores


class _Best:
    """The `n` best pages, kept up to date: scores never fall, so only pages that gained can enter."""

    def __init__(self, titles: Sequence[str], scores: np.ndarray, n: int) -> None:
        """`scores` (P,) is the array that is being added to."""
        self._titles, self._scores, self._n = titles, scores, n
        self._order: list[int] = []  # the best pages, best first
        self._known: dict[int, float] = {}  # of these pages, their scores
        self._gained: dict[int, float] = {}  # pages that may have to move, with their new scores
        self._guesses: dict[int, Guess] = {}  # of the best pages, and old ones of pages that were among them
        self._list: list[Guess] = []  # the answer to the last call of `guesses`
        self._least = 0.0  # a page below this score is not among the best

    def gain(self, pages: np.ndarray, scores: np.ndarray) -> None:
        """These (distinct) pages now have these scores."""
        hits = (scores >= self._least).nonzero()[0]
        if len(hits) > 2 * self._n:  # only the best n of many can stay; those listed already are looked up again
            hits = hits[_best_of(pages[hits], scores[hits], self._n)]
            self._gained.update(zip(self._order, self._scores[self._order].tolist(), strict=True))
        self._gained.update(zip(pages[hits].tolist(), scores[hits].tolist(), strict=True))

    def guesses(self) -> list[Guess]:
        """The best pages now: best first, equal scores by page number, that is by title."""
        gained, known, order = self._gained, self._known, self._order
        if gained:
            order += gained.keys() - known.keys()
            known.update(gained)
            order.sort(key=known.__getitem__, reverse=True)
            scores = list(map(known.__getitem__, order))
            if any(map(eq, scores, islice(scores, 1, None))):
                order.sort(key=lambda page: (-known[page], page))
            for page in order[self._n :]:
                del known[page]
            del order[self._n :]
            if len(order) == self._n:
                self._least = known[order[-1]]
            titles, guesses = self._titles, self._guesses
            for page, score in gained.items():
                if page in known:
                    guesses[page] = Guess(titles[page], score)
            self._gained = {}
            self._list = list(map(guesses.__getitem__, order))
        return self._list.copy()


def _best_of(pages: np.ndarray, scores: np.ndarray, n: int) -> np.ndarray:
    """Where the `n` highest scores of these (distinct) pages stand, best first, equal scores by page number."""
    places = np.arange(len(pages))
    if len(pages) > n:
        least = np.partition(scores, len(pages) - n)[len(pages) - n]
        places = np.flatnonzero(scores >= least)
    return places[np.lexsort((pages[places], -scores[places]))[:n]]


def build(config: Bm25Config) -> Bm25Guesser:
    """The guesser of a config. Raises ConfigError for an unknown model."""
    return Bm25Guesser.load(resolve_model(config.model), config)
