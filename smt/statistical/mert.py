"""Minimum error rate training (Och 2003): weights under which the best of the n-best translations score well.

BLEU changes with the weights only where another candidate becomes the best, so there is no gradient: each weight is
moved in turn by steps that shrink, from several starts.  Statistics are those of sacrebleu, summed over sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STEPS = (1.0, 0.5, 0.2, 0.1, 0.05)  # of a weight, relative to the mean size of the weights
STARTS = 6  # the given weights and perturbed ones
KEEP = 1e-4  # how much of a better BLEU (0 to 1) is worth a change of the weights


@dataclass(frozen=True, slots=True)
class Candidates:
    """N-best lists of all sentences, padded: row (s, n) is translation n of sentence s."""

    scores: np.ndarray  # (S, N, W) float64, components of the log-linear model; finite; padding repeats row 0
    stats: np.ndarray  # (S, N, 10) float64, see `bleu`

    @classmethod
    def of(cls, lists: Sequence[Sequence[tuple[Sequence[float], Sequence[float]]]]) -> Candidates:
        """From (components, statistics) of each candidate; every list has at least one."""
        width = max(map(len, lists))
        padded = [[*rows, *[rows[0]] * (width - len(rows))] for rows in lists]
        return cls(
            np.array([[scores for scores, _ in rows] for rows in padded], dtype=np.float64),
            np.array([[stats for _, stats in rows] for rows in padded], dtype=np.float64),
        )

    def bleu(self, weights: np.ndarray) -> float:
        """Corpus BLEU (0 to 1) of the candidates that `weights` (W,) rank first; ties: the earlier candidate."""
        best = (self.scores @ weights).argmax(1)  # (S,)
        return bleu(self.stats[np.arange(len(best)), best].sum(0))


def bleu(stats: np.ndarray) -> float:
    """BLEU (0 to 1) of summed statistics (10,): 4 matches, 4 totals, words, reference words.  Unsmoothed."""
    matches, totals, words, reference = stats[:4], stats[4:8], stats[8], stats[9]
    if not matches.all():
        return 0.0
    return float(np.exp(np.log(matches / totals).mean() + min(0.0, 1.0 - reference / words)))


def search(candidates: Candidates, start: Sequence[float], free: Sequence[int], seed: int) -> tuple[list[float], float]:
    """The best weights found and their BLEU (0 to 1).

    Only those of index `free` move.  The result is scaled so that their sizes have mean 1.
    """
    rng = np.random.default_rng(seed)
    index = list(free)
    first = np.array(start, dtype=np.float64)
    best, best_bleu = first, candidates.bleu(first)
    for attempt in range(STARTS):
        weights = first.copy()
        if attempt:
            weights[index] *= np.exp(rng.normal(0.0, 0.5, len(index)))
        weights, value = _climb(candidates, weights, index)
        if value > best_bleu + KEEP:
            best, best_bleu = weights, value
    scale = np.abs(best[index]).mean()
    return (best / scale).tolist(), best_bleu


def _climb(candidates: Candidates, weights: np.ndarray, index: list[int]) -> tuple[np.ndarray, float]:
    """Coordinate ascent with every step size in turn, until none helps."""
    value = candidates.bleu(weights)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            size = np.abs(weights[index]).mean() * step
            for i in index:
                for change in (size, -size):
                    trial = weights.copy()
                    trial[i] += change
                    result = candidates.bleu(trial) if trial[index].any() else 0.0  # all zero would rank nothing
                    if result > value + KEEP:
                        weights, value, moved = trial, result, True
    return weights, value
