"""Term counts of texts by page: the training of the BM25 guesser."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from guessers.retrieval.bm25 import Analyzer, Bm25Config, Bm25Guesser, Index, analyzer_of
from guessers.text import Profile
from sqa.core import FilePath


@dataclass(frozen=True, slots=True)
class Bm25Training:
    """Settings of the entry `bm25` in configs/train_guessers.yaml, which documents their meanings."""

    kind: Literal["bm25"]
    output: Path
    folds: tuple[str, ...] = ("guesser", "buzzer", "dev")
    bonus: bool = False  # also train on bonus parts (guessers/bonus.py)
    analyzer: Literal["stems", "standard", "english"] = "stems"
    pair_min_count: int | None = None  # rarer pairs are left out; None = no pairs
    texts: tuple[FilePath, ...] = ()  # your own texts instead of the tossups: JSON lines {text, page, id?}


def fit(
    profiles: Iterable[Profile],
    pair_min_count: int | None = 2,
    config: Bm25Config | None = None,
    analyzer: str = "stems",
) -> Bm25Guesser:
    """Return a guesser trained on tossups, or on any records with a text and a page."""
    return Bm25Guesser(count(profiles, pair_min_count, analyzer), config or Bm25Config())


def count(profiles: Iterable[Profile], pair_min_count: int | None, analyzer: str = "stems") -> Index:
    """Return the term counts of the profiles that have a page; if `pair_min_count` is None, without pairs."""
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
    return Index(tuple(titles), tuple(words), pair_keys, starts, pages, counts, analyzer)


class _Reading:
    """Texts as one sequence of term ids, in order of arrival."""

    def __init__(self, analyze: Analyzer) -> None:
        self._analyze = analyze
        self._ids: dict[str, int] = {}  # by term, in order of first occurrence
        self._of_word: dict[str, tuple[int, ...]] = {}  # word as written -> ids of its terms
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
        """Return sorted titles, the page of each term, sorted words, and the id of each term.

        Pages and ids are indices into the sorted lists.
        """
        titles, page_place = _sorted(self._pages)
        words, word_place = _sorted(self._ids)
        lengths = np.diff(np.array(self._ends, np.int64), prepend=0)
        pages = np.repeat(page_place[np.array(self._page_of_profile, np.int64)], lengths)
        return titles, pages, words, word_place[np.array(self._row, np.int64)]

    def last_of_profile(self) -> np.ndarray:
        """Return, for each term, whether it is the last of its text, which forms no pair with the next term."""
        last = np.zeros(len(self._row), np.bool_)
        ends = np.array(self._ends, np.int64)
        last[ends[ends > 0] - 1] = True
        return last


def _sorted(numbered: dict[str, int]) -> tuple[list[str], np.ndarray]:
    """Return the sorted names, and an array that maps each name's id to its index among them."""
    names = sorted(numbered)
    position = np.empty(len(names), np.int64)
    position[[numbered[name] for name in names]] = np.arange(len(names))
    return names, position


def _count(terms: np.ndarray, pages: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs of term and page as three arrays: terms, pages and counts, ordered by term and page."""
    width = int(pages.max(initial=0)) + 1
    keys, counts = np.unique(terms * width + pages, return_counts=True)
    return (*np.divmod(keys, width), counts)
