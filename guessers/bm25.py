"""The BM25 guesser: every page is one document, all its training tossups together; the text so far is the query.

Two fields, the words of a page (stems without stop words) and its pairs of successive words.  A page d scores

    sum over tokens t of the text of  boost(t) idf(t) tf(t, d) / (tf(t, d) + k1 (1 - b + b |d| / mean |d|))
    idf(t) = ln(1 + (N - df(t) + 1/2) / (df(t) + 1/2))

with boost 1 for words and `pair_boost` for pairs, N pages, df(t) of them with t, |d| the tokens of d in the field.
This is BM25 as Lucene computes it since version 8 (Robertson and Zaragoza 2009, without the constant k1 + 1), but for
lengths, which Lucene stores in a byte and this file exactly.  A token that occurs twice in the text counts twice.

A score is a sum over the words read, so the next word only adds its postings; nothing is read twice.  That loop is in
guessers/bm25_kernel.py.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
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
        if fits and len(per_word) == len(words) and per_word.sum() == len(second):
            running = np.cumsum(deltas)
            before = np.concatenate([[0], running])[starts[:-1]]  # the sum of all steps of earlier terms
            pages = running - np.repeat(before, frequency)
            fits = pages.max(initial=-1) < len(titles)
        else:
            fits = False
        if not fits:
            raise DataError(f"{folder}: the model's tables do not fit together; restore or train it again")
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
        self._pages = np.ascontiguousarray(index.pages)
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
        from guessers.bm25_kernel import best_pages  # here, since numba takes a while to import

        n = min(n, len(self._titles))
        if n < 1:
            return [[] for _ in words]
        terms: list[int] = []
        ends = []
        for of_word in self._terms(words):
            terms += of_word
            ends.append(len(terms))
        pages, scores, listing, first, last = best_pages(
            np.array(terms, np.int64),
            np.array(ends, np.int64),
            self.index.starts,
            self._pages,
            self._weights,
            len(self._titles),
            n,
        )
        titles = map(self._titles.__getitem__, pages.tolist())
        guesses = np.fromiter(_guesses(titles, scores.tolist()), dtype=object, count=len(pages))
        listed = guesses[listing].tolist()
        return [listed[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]

    def _guess(self, line: str, n: int) -> list[Guess]:
        all_scores = np.zeros(len(self._titles))
        for terms in self._terms(line.split()):
            for term in terms:
                start, end = self._starts[term], self._starts[term + 1]
                pages = self._pages[start:end]
                scores = all_scores.take(pages)
                scores += self._weights[start:end]
                all_scores[pages] = scores
        order = np.lexsort((np.arange(len(all_scores)), -all_scores))[:n]  # equal scores by page number, that is title
        return [Guess(self._titles[page], float(all_scores[page])) for page in order.tolist() if all_scores[page] > 0]

    def _terms(self, words: Iterable[str]) -> Iterator[list[int]]:
        """The known terms of each word: its words and the pairs that end with one of them."""
        word_ids, pair_ids, n_words = self._word_ids, self._pair_ids, len(self._word_ids)
        last: int | None = None  # id of the word before, None if unknown
        for word in words:
            terms = []
            for stem in text.content_stems(word):
                id = word_ids.get(stem)
                if id is not None:
                    if last is not None and (pair := pair_ids.get(last * n_words + id)) is not None:
                        terms.append(pair)
                    terms.append(id)
                last = id
            yield terms


_SET_PAGE, _SET_SCORE = Guess.__dict__["page"].__set__, Guess.__dict__["score"].__set__


def _guesses(titles: Iterable[str], scores: Sequence[float]) -> list[Guess]:
    """list(map(Guess, titles, scores)) in a third of the time: it is __init__ of a frozen class that is slow."""
    made = list(map(object.__new__, repeat(Guess, len(scores))))
    deque(map(_SET_PAGE, made, titles), maxlen=0)
    deque(map(_SET_SCORE, made, scores), maxlen=0)
    return made


def build(config: Bm25Config) -> Bm25Guesser:
    """The guesser of a config. Raises ConfigError for an unknown model."""
    return Bm25Guesser.load(resolve_model(config.model), config)
