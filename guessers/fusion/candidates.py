"""The pages that any of several guessers names after some words, and the numbers by which a fusion weighs them.

P guessers, T steps, M candidates over all steps, D = 7 P + 4 numbers each.  Scores of guessers have scales of their
own, so only their order, ratios and spread are looked at.  Of a candidate, by guesser (zero or the lowest value where
that guesser does not name it):

    named              1 or 0
    place              6 / (5 + rank), so 1 at the top
    ratio              ln(score / the top score), kept in -4 .. 0
    spread             (score - mean) / deviation of that guesser's scores of the step, kept in -3 .. 8

of its step, by guesser, which tell how sure it is, hence how clean the text:

    top                ln(top score)
    lead               ln(top score / second score), kept in 0 .. 4
    lead in spread     spread of the top score

and beside these: ln(1 + words read), guessers that have it at the top, different pages at the top, and whether it is
"none of them", a last candidate of every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sqa.core.types import Guess

DEPTH = 50  # guesses asked of every guesser, however many are wanted of the fusion
OF_PAGE, OF_STEP, BESIDE = 4, 3, 4  # numbers of a candidate and of a step by guesser, and others
_TINY = 1e-9
_LOWEST = (0.0, 0.0, -4.0, -3.0)  # of a candidate that a guesser does not name

Lists = Sequence[Sequence[Sequence[Guess]]]  # by guesser, by step: its best guesses, best first


class Candidates(NamedTuple):
    """The candidates of T steps, by step; within one in no order that means anything."""

    pages: list[str]  # M
    step: np.ndarray  # (M,) int64, not falling
    ranks: np.ndarray  # (M, P) int64 from 0; DEPTH where a guesser does not name it
    rows: np.ndarray  # (M + T, D) float64: the candidates, then "none of them" of every step


def width(guessers: int) -> int:
    """D, the numbers of a candidate of so many guessers."""
    return (OF_PAGE + OF_STEP) * guessers + BESIDE


def candidates(lists: Lists, words: Sequence[int]) -> Candidates:
    """The candidates of steps at which `words` (T,) words had been read; every list has at most DEPTH guesses."""
    steps, guessers = len(words), len(lists)
    ids: dict[str, int] = {}
    flat = [_Flat.of(of_guesser, ids) for of_guesser in lists]
    keys = np.concatenate([row.step * len(ids) + row.page for row in flat])
    distinct, inverse = np.unique(keys, return_inverse=True)
    step = distinct // max(len(ids), 1)
    m = len(distinct)
    of_page = np.tile(np.array(_LOWEST), (m + steps, guessers, 1))  # (M + T, P, 4)
    of_step = np.zeros((steps, guessers, OF_STEP))
    ranks = np.full((m, guessers), DEPTH)
    at = 0
    for column, row in enumerate(flat):
        rows = inverse[at : at + len(row.page)]
        at += len(row.page)
        of_page[rows, column] = row.of_page()
        of_step[:, column] = row.of_step()
        ranks[rows, column] = row.rank
    beside = np.zeros((m + steps, BESIDE))
    every = np.concatenate([step, np.arange(steps)])
    beside[:, 0] = np.log1p(np.asarray(words, np.float64))[every]
    tops = (ranks == 0).sum(1)
    beside[:m, 1] = tops
    beside[:, 2] = np.bincount(step[tops > 0], minlength=steps)[every]
    beside[m:, 3] = 1
    rows = np.concatenate([of_page.reshape(m + steps, -1), of_step.reshape(steps, -1)[every], beside], axis=1)
    titles = list(ids)
    return Candidates([titles[i] for i in (distinct % max(len(ids), 1)).tolist()], step, ranks, rows)


class _Flat(NamedTuple):
    """The guesses of one guesser, all steps in one row of G."""

    page: np.ndarray  # (G,) int64, a number for each title
    score: np.ndarray  # (G,) float64
    step: np.ndarray  # (G,) int64
    rank: np.ndarray  # (G,) int64 from 0
    counts: np.ndarray  # (T,) int64, guesses of each step

    @classmethod
    def of(cls, lists: Sequence[Sequence[Guess]], ids: dict[str, int]) -> _Flat:
        """Numbers new titles in `ids`."""
        counts = np.array([len(guesses) for guesses in lists], np.int64)
        total = int(counts.sum())
        page = np.fromiter((ids.setdefault(g.page, len(ids)) for guesses in lists for g in guesses), np.int64, total)
        score = np.fromiter((g.score for guesses in lists for g in guesses), np.float64, total)
        step = np.repeat(np.arange(len(counts)), counts)
        return cls(page, score, step, np.arange(total) - (np.cumsum(counts) - counts)[step], counts)

    def of_page(self) -> np.ndarray:
        """(G, 4)."""
        ratio = np.log((self.score + _TINY) / (self._best(0) + _TINY)[self.step])
        columns = [np.ones(len(self.page)), 6 / (6 + self.rank), np.clip(ratio, -4, 0), self._spread()]
        return np.stack(columns, axis=1)

    def of_step(self) -> np.ndarray:
        """(T, 3); zeros for a step without guesses."""
        top, second = self._best(0), self._best(1)
        columns = np.zeros((len(self.counts), OF_STEP))
        columns[:, 0] = np.log(top + 1e-6)
        columns[:, 1] = np.clip(np.log((top + _TINY) / (second + _TINY)), 0, 4)
        columns[self.step[self.rank == 0], 2] = self._spread()[self.rank == 0]
        columns[self.counts == 0] = 0
        return columns

    def _best(self, rank: int) -> np.ndarray:
        """(T,) the score at that rank, 0 where there is none."""
        best = np.zeros(len(self.counts))
        at_rank = self.rank == rank
        best[self.step[at_rank]] = self.score[at_rank]
        return best

    def _spread(self) -> np.ndarray:
        """(G,) score in deviations from the mean of its step."""
        n = np.maximum(self.counts, 1)
        mean = np.bincount(self.step, self.score, len(n)) / n
        off = self.score - mean[self.step]
        deviation = np.sqrt(np.bincount(self.step, off * off, len(n)) / n)
        return np.clip(off / (deviation[self.step] + _TINY), -3, 8)
