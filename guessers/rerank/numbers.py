"""The numbers by which weights judge a candidate, made of its evidence and of that for the others of its step.

T steps, M candidates over all steps, D = len(NUMBERS) numbers each; after the candidates comes "none of them" of every
step, which has the step's numbers and zeros for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guessers.rerank.evidence import EVIDENCE, WINDOWS

COMPARED = ("score", "bm25", "words", "pairs")  # each as share of the step's largest, its ln, and 6 / (5 + rank)
SPREAD = ("score", "bm25")  # in deviations from the step's mean
AS_IT_IS = EVIDENCE[EVIDENCE.index("title") :]
STEP = ("words read", "top score", "lead")  # ln(1 + words), ln of the best TF-IDF score and of it over the second
NUMBERS = (
    *(f"{what}: {how}" for what in COMPARED for how in ("share", "ln share", "place")),
    *(f"{what}: spread" for what in SPREAD),
    *(f"last {window}" for window in WINDOWS),
    *(f"last {window}: place" for window in WINDOWS),
    "word hits",
    "pair hits",
    "most",
    *AS_IT_IS,
    *STEP,
    "none of them",
)
_TINY = 1e-9


def numbers(evidence: np.ndarray, step: np.ndarray, words: Sequence[int]) -> np.ndarray:
    """(M + T, D).  evidence (M, R); step (M,) int64, 0 .. T - 1, not falling, each there; words (T,) read so far."""
    of = {name: evidence[:, place] for place, name in enumerate(EVIDENCE)}
    of["score"] = of["words"] + of["pairs"]
    firsts = np.flatnonzero(np.diff(step, prepend=-1))
    count = np.diff(firsts, append=len(step))
    read = np.asarray(words, np.float64)
    top = np.maximum.reduceat(of["score"], firsts)
    columns = []
    for name in COMPARED:
        share = of[name] / (np.maximum.reduceat(of[name], firsts) + _TINY)[step]
        columns += [share, np.clip(np.log(share + _TINY), -4, 0), _place(of[name], step, firsts)]
    for name in SPREAD:
        off = of[name] - (np.bincount(step, of[name]) / count)[step]
        deviation = np.sqrt(np.bincount(step, off * off) / count)
        columns.append(off / (deviation[step] + _TINY))
    windows = [of[f"last {window}"] for window in WINDOWS]
    columns += [window / (top[step] + _TINY) for window in windows]
    columns += [_place(window, step, firsts) for window in windows]
    columns += [of["word hits"] / read[step], of["pair hits"] / read[step], of["most"] / (of["score"] + _TINY)]
    columns += [of[name] for name in AS_IT_IS]
    of_step = np.stack([np.log1p(read), np.log(top + _TINY), _lead(of["score"], step, firsts)], axis=1)  # (T, 3)
    m, t = len(step), len(read)
    rows = np.zeros((m + t, len(NUMBERS)))
    rows[:m, : len(columns)] = np.stack(columns, axis=1)
    rows[:, len(columns) : -1] = of_step[np.concatenate([step, np.arange(t)])]
    rows[m:, -1] = 1
    return rows


def _order(values: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Best first within each step; equal ones as they come."""
    return np.lexsort((-values, step))


def _place(values: np.ndarray, step: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """6 / (5 + rank) in the step, 1 at the top."""
    rank = np.empty(len(values))
    rank[_order(values, step)] = np.arange(len(values)) - firsts[step]
    return 6 / (6 + rank)


def _lead(values: np.ndarray, step: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """(T,) ln(best / second), kept in 0 .. 4; 4 where there is no second."""
    ordered = values[_order(values, step)]
    alone = np.diff(firsts, append=len(values)) < 2
    second = ordered[np.minimum(firsts + 1, len(values) - 1)]
    lead = np.clip(np.log((ordered[firsts] + _TINY) / (second + _TINY)), 0, 4)
    return np.where(alone, 4.0, lead)
