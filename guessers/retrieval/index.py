"""Term counts by page, the only thing that the BM25 guesser learns, and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from guessers import text
from guessers.text import Profile
from sqa.core.errors import DataError
from sqa.files.model_files import (
    pack_integers,
    pack_strings,
    read_tensors,
    unpack_integers,
    unpack_strings,
    write_tensors,
)

VERSION = 1  # of the code that turns words into guesses; raise it when guesses change
_STEPS, _COUNTS = "page_steps", "counts"

Analyzer = Callable[[str], tuple[str, ...]]  # the terms of one word
ANALYZERS = ("stems", "standard", "english")  # ours, and Lucene's two


def analyzer_of(name: str) -> Analyzer:
    """The analyzer of a name of ANALYZERS; Lucene's are imported when they are asked for."""
    if name == "stems":
        return text.content_stems
    from guessers.retrieval import lucene

    return lucene.standard if name == "standard" else lucene.english


@dataclass(frozen=True)
class Index:
    """Term counts by page. Terms 0..W-1 are words, the others pairs (their key: first word * W + second word)."""

    titles: tuple[str, ...]  # sorted
    words: tuple[str, ...]  # sorted
    pair_keys: np.ndarray  # (pairs,) int64, increasing
    starts: np.ndarray  # (terms + 1,) int64, where a term's postings begin
    pages: np.ndarray  # (postings,) int64, increasing within a term
    counts: np.ndarray  # (postings,) int64, >= 1
    analyzer: str = "stems"  # a name of ANALYZERS

    @classmethod
    def of(cls, profiles: Iterable[Profile], pair_min_count: int | None, analyzer: str = "stems") -> Index:
        """Count the profiles that have a page. `pair_min_count` None: no pairs at all."""
        read = _Reading(analyzer_of(analyzer))
        for profile in profiles:
            if profile.page is not None:
                read.add(profile.text, profile.page)
        titles, pages, words, ids = read.sorted()
        word_rows = _count(ids, pages)
        if pair_min_count is None:
            pair_keys, pair_rows = np.empty(0, np.int64), _count(ids[:0], pages[:0])
        else:
            last = read.last_of_profile()[:-1]
            keys, at = (ids[:-1] * len(words) + ids[1:])[~last], pages[:-1][~last]
            pair_keys, which, times = np.unique(keys, return_inverse=True, return_counts=True)
            often = times >= pair_min_count
            kept = often[which]
            number = np.cumsum(often) - 1
            pair_keys, pair_rows = pair_keys[often], _count(number[which[kept]], at[kept])
        terms = np.concatenate([word_rows[0], pair_rows[0] + len(words)])
        frequency = np.bincount(terms, minlength=len(words) + len(pair_keys))
        starts = np.concatenate([[0], np.cumsum(frequency)])
        pages, counts = (np.concatenate([word_rows[i], pair_rows[i]]) for i in (1, 2))
        return cls(tuple(titles), tuple(words), pair_keys, starts, pages, counts, analyzer)

    def fields(self) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """(terms, postings) of the words and of the pairs."""
        words, at = len(self.words), int(self.starts[len(self.words)])
        return (slice(0, words), slice(0, at)), (slice(words, None), slice(at, len(self.pages)))

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
            _STEPS: pack_integers(deltas),
            _COUNTS: pack_integers(self.counts),
        }
        write_tensors(folder, tensors, {"kind": "bm25", "version": VERSION, "analyzer": self.analyzer})

    @classmethod
    def load(cls, folder: Path) -> Index:
        """Read what `save` wrote; DataError if it is damaged."""
        tensors, config = read_tensors(folder, "bm25", VERSION)
        analyzer = config.get("analyzer", "stems")
        if not isinstance(analyzer, str) or analyzer not in ANALYZERS:
            raise DataError(f"{folder}: analyzer {analyzer!r} is none of {', '.join(ANALYZERS)}; train the model again")
        try:
            titles, words = unpack_strings(tensors["titles"]), unpack_strings(tensors["words"])
            names = ("pairs_per_word", "pair_seconds", "pages_per_term", _STEPS, _COUNTS)
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
        keys = first * len(words) + second
        return cls(tuple(titles), tuple(words), keys, starts, pages, counts, analyzer)


class _Reading:
    """Texts as one row of word numbers, in the order they came."""

    def __init__(self, analyze: Analyzer) -> None:
        self._analyze = analyze
        self._ids: dict[str, int] = {}  # by term, in the order of first sight
        self._of_word: dict[str, tuple[int, ...]] = {}  # words as they are written -> ids of their terms
        self._pages: dict[str, int] = {}
        self._row: list[int] = []
        self._page_of_profile: list[int] = []
        self._ends: list[int] = []

    def add(self, line: str, page: str) -> None:
        row, ids_of = self._row, self._of_word
        for word in line.split():
            ids = ids_of.get(word)
            if ids is None:
                ids = ids_of[word] = tuple(self._ids.setdefault(term, len(self._ids)) for term in self._analyze(word))
            row.extend(ids)
        self._page_of_profile.append(self._pages.setdefault(page, len(self._pages)))
        self._ends.append(len(row))

    def sorted(self) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
        """Titles, page of each term (n,), words, term ids (n,), titles and words sorted and numbered by their place."""
        titles, page_place = _sorted(self._pages)
        words, word_place = _sorted(self._ids)
        lengths = np.diff(np.array(self._ends, np.int64), prepend=0)
        pages = np.repeat(page_place[np.array(self._page_of_profile, np.int64)], lengths)
        return titles, pages, words, word_place[np.array(self._row, np.int64)]

    def last_of_profile(self) -> np.ndarray:
        """(n,) bool: the last term of its text, which makes no pair with the next."""
        last = np.zeros(len(self._row), np.bool_)
        ends = np.array(self._ends, np.int64)
        last[ends[ends > 0] - 1] = True
        return last


def _sorted(numbered: dict[str, int]) -> tuple[list[str], np.ndarray]:
    """The names sorted, and (n,) int64 the place there of each number."""
    names = sorted(numbered)
    position = np.empty(len(names), np.int64)
    position[[numbered[name] for name in names]] = np.arange(len(names))
    return names, position


def _count(terms: np.ndarray, pages: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Terms, pages and counts (rows,) of what occurs, by term and page."""
    width = int(pages.max(initial=0)) + 1
    keys, counts = np.unique(terms * width + pages, return_counts=True)
    return (*np.divmod(keys, width), counts)


def tfidf_weights(index: Index, b: float, pair_boost: float) -> np.ndarray:
    """(postings,) float64, what one occurrence of the term adds to the page's score (guessers/retrieval/tfidf.py)."""
    pages, frequency = len(index.titles), np.diff(index.starts)
    idf = 1 + np.log(pages / frequency)  # (terms,)
    idf[len(index.words) :] *= pair_boost
    idf = np.repeat(idf, frequency)
    vector = idf * (1 + np.log(index.counts))
    length = np.sqrt(np.bincount(index.pages, vector * vector, minlength=pages))
    return idf * vector / length[index.pages] ** b
