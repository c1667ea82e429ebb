"""The guesses of one question as columns: a step's become Guess objects when somebody looks at them.

A run has a million guesses, and most metrics want to know of each step only where the right page stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np

from sqa.core.answers import key
from sqa.core.arrays import Floats, Ints
from sqa.core.types import Guess


class StoredGuesses(Sequence[tuple[Guess, ...]]):
    """n steps of guesses, best first; equal to the tuple of tuples that it stands for."""

    __slots__ = ("_pages", "_scores", "_starts", "_titles")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, titles: Sequence[str], pages: Ints, scores: Floats, starts: Ints) -> None:
        """`pages` (N,) index into `titles`, `scores` (N,) float64; step i has those from starts[i] to starts[i + 1]."""
        self._titles, self._pages, self._scores, self._starts = titles, pages, scores, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> tuple[Guess, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Guess, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Guess, ...] | list[tuple[Guess, ...]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        step = range(len(self))[index]
        there = slice(self._starts[step], self._starts[step + 1])
        titles = map(self._titles.__getitem__, self._pages[there].tolist())
        return tuple(Guess.many(titles, self._scores[there].tolist()))

    def __iter__(self) -> Iterator[tuple[Guess, ...]]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return f"StoredGuesses({tuple(self)!r})"

    def rank(self, answer: str) -> Ints:
        """(n,) int64, 1-based rank of the first guess of each step that is `answer` (see sqa.core.answers), 0: none."""
        wanted = key(answer)  # an empty title is nobody's answer
        return self.rank_where(lambda title: key(title) == wanted) if wanted else np.zeros(len(self), dtype=np.int64)

    def rank_where(self, is_right: Callable[[str], bool]) -> Ints:
        """(n,) int64, 1-based rank of the first guess of each step whose title is right, 0: none."""
        rank = np.zeros(len(self), dtype=np.int64)
        right = [page for page in np.unique(self._pages).tolist() if is_right(self._titles[page])]
        places = np.flatnonzero(np.isin(self._pages, right))
        steps = np.searchsorted(self._starts, places, side="right") - 1
        places, steps = places[::-1], steps[::-1]  # the first of a step is written last, and stays
        rank[steps] = places - self._starts[steps] + 1
        return rank
