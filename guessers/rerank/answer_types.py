"""Kinds: the words by which a question refers to its answer ("this German author", "these animals", "his", "it").

Retrieval cannot distinguish a novel from its author, because their clues share all names.  The question states which of
them it requests, but in words that occur in thousands of questions and therefore have little weight in retrieval.  A
kind is the stem of one of up to three words after "this" or "these", up to the first stop word or comma, or a pronoun
("#his").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from guessers import text
from guessers.retrieval.bm25 import page_steps, postings_of
from guessers.text import Profile
from sqa.files import pack_integers, pack_strings, unpack_integers, unpack_strings

POINTING = frozenset({"this", "these"})
PRONOUNS = frozenset({"he", "his", "him", "she", "her", "it", "its", "they", "their"})
MARK = "#"  # prefix of a pronoun
FOLLOWING = 3  # words after "this" or "these"
SMOOTHING = 2.0  # lessons of an average page that are added to every page's lessons
CERTAIN = 0.98  # upper limit of the probability of a kind, so that an unnamed kind cannot exclude a page

Tables = Mapping[str, np.ndarray]


class KindReader:
    """Reader that finds the kinds in a text, word by word."""

    def __init__(self) -> None:
        self._left = 0  # number of words that may still name a kind

    def read(self, word: str) -> list[str]:
        """Return the kinds that the next word names, independent of later words."""
        tokens = text.tokens(word)
        kinds = [f"{MARK}{token}" for token in tokens if token in PRONOUNS]
        if self._left and tokens and tokens[0] not in text.STOP_WORDS:
            kinds.append(text.stem(tokens[0]))
            self._left = 0 if word[-1] in ",.;:" else self._left - 1
        else:
            self._left = 0
        if tokens and tokens[-1] in POINTING:
            self._left = FOLLOWING
        return kinds


class Kinds:
    """For each of P pages, the number of lessons that use each of K kinds for it."""

    def __init__(
        self, names: Sequence[str], starts: np.ndarray, pages: np.ndarray, counts: np.ndarray, lessons: np.ndarray
    ) -> None:
        """Store the counts, all int64; raises ValueError if they do not fit together.

        Args:
            starts: Index of the first entry of each kind, of shape (K + 1,).
            pages: Page of each entry; entries are ordered by kind.
            counts: Number of lessons of each entry.
            lessons: Number of lessons of each page.
        """
        fits = len(starts) == len(names) + 1 and starts[-1] == len(pages) == len(counts)
        counted = counts.min(initial=1) > 0 and np.diff(starts).min(initial=1) > 0 and lessons.any()
        if not fits or pages.max(initial=-1) >= len(lessons) or not counted:
            raise ValueError("the tables of kinds do not fit together")
        self.names, self.lessons = tuple(names), lessons
        self._starts, self._pages, self._counts = starts, pages, counts
        self._index = {name: index for index, name in enumerate(names)}
        self._numbers, self._number = np.unique(lessons, return_inverse=True)  # (U,) distinct numbers, (P,) index

    @classmethod
    def of(cls, profiles: Iterable[Profile], titles: Sequence[str], least: int) -> Kinds:
        """Count the lessons that use a kind for their page; kinds with fewer than `least` lessons are omitted."""
        number = {title: index for index, title in enumerate(titles)}
        counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
        lessons = np.zeros(len(titles), np.int64)
        for profile in profiles:
            if profile.page is None:
                continue
            page, reader = number[profile.page], KindReader()
            lessons[page] += 1
            for kind in {kind for word in profile.text.split() for kind in reader.read(word)}:
                counts[kind][page] += 1
        names = sorted(name for name, pages in counts.items() if pages.total() >= least)
        entries = [sorted(counts[name].items()) for name in names]
        starts = np.cumsum([0, *map(len, entries)])
        table = np.array([pair for rows in entries for pair in rows], np.int64).reshape(-1, 2)
        return cls(names, starts, table[:, 0], table[:, 1], lessons)

    def called(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Return (pages, share): the pages of a kind, and the share of their lessons (plus one) that use it."""
        kind_id = self._index.get(kind)
        entries = slice(0, 0) if kind_id is None else slice(self._starts[kind_id], self._starts[kind_id + 1])
        pages = self._pages[entries]
        return pages, self._counts[entries] / (self.lessons[pages] + 1)

    def evidence(self, kind: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the evidence for each page if a question uses a kind, and if it does not; None for an uncounted kind.

        They are ln(p(kind | page) / p(kind | average page)) and ln(p(not kind | page) / p(not kind | average page)).
        """
        kind_id = self._index.get(kind)
        if kind_id is None:
            return None
        without, entries, rate = self._chances(kind_id)
        used = self._of_pages(kind_id, np.log(without / rate), np.log(entries / rate))
        return used, self._of_pages(kind_id, *self._negatives(kind_id))

    def negatives(self) -> np.ndarray:
        """Return each page's sum of the evidence of unused kinds: the evidence of a question that names no kind."""
        without_any, entries = np.zeros(len(self._numbers)), np.zeros(len(self.lessons))
        for kind_id in range(len(self.names)):
            without, called = self._negatives(kind_id)
            pages = self._pages[self._starts[kind_id] : self._starts[kind_id + 1]]
            without_any += without
            entries[pages] += called - without[self._number[pages]]
        return without_any[self._number] + entries

    def _chances(self, kind_id: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the probability of a kind for pages without it, for its pages, and for an average page.

        The first array has a value for each of the U distinct numbers of lessons.
        """
        postings = slice(self._starts[kind_id], self._starts[kind_id + 1])
        rate = float(self._counts[postings].sum() / self.lessons.sum())
        times = SMOOTHING * rate
        entries = (times + self._counts[postings]) / (self.lessons[self._pages[postings]] + SMOOTHING)
        return times / (self._numbers + SMOOTHING), entries, rate

    def _negatives(self, kind_id: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the evidence of an unused kind for pages without it, by number of lessons, and for its pages."""
        without, entries, rate = self._chances(kind_id)
        of_any = np.log1p(-min(rate, CERTAIN))
        return np.log1p(-np.minimum(without, CERTAIN)) - of_any, np.log1p(-np.minimum(entries, CERTAIN)) - of_any

    def _of_pages(self, kind_id: int, without: np.ndarray, entries: np.ndarray) -> np.ndarray:
        """Return a value for each page: from `entries` if the page has the kind, else from `without`, by lessons."""
        values = without[self._number]
        values[self._pages[self._starts[kind_id] : self._starts[kind_id + 1]]] = entries
        return values

    def tables(self) -> dict[str, np.ndarray]:
        """Return the tables, packed for a model's file."""
        return {
            "kinds": pack_strings(self.names),
            "pages_per_kind": pack_integers(np.diff(self._starts)),
            "page_steps": pack_integers(page_steps(self._starts, self._pages)),
            "counts": pack_integers(self._counts),
            "lessons": pack_integers(self.lessons),
        }

    @classmethod
    def read(cls, tables: Tables) -> Kinds:
        """Return the kinds stored by `tables`.  Raises KeyError or ValueError if a table is missing or does not fit."""
        names = unpack_strings(tables["kinds"])
        keys = ("pages_per_kind", "page_steps", "counts", "lessons")
        per_kind, steps, counts, lessons = (unpack_integers(tables[key]) for key in keys)
        if per_kind.sum() != len(steps):
            raise ValueError("the tables of kinds do not fit together")
        return cls(names, *postings_of(steps, per_kind), counts, lessons)
