"""The 22 numbers a trained buzzer sees at each step (QANTA's `vector_converter_0`), from the best ten guesses.

With p1..p10 the scores of the ten best guesses (0 where there are fewer) and "previous" the step before (0 at first):

    0-2    p1, p2, p3                       13     how many of the best five were not among the previous ten
    3-5    1 if guess 1, 2, 3 is new        14-15  mean of the ten, now and previously
    6-8    change of its score, 1, 2, 3     16     mean of the best SIX
    9-10   p1 - p2, p2 - p3                 17     previous mean of the best five
    11-12  p1, p2 minus the previous ones   18-19  variance of the ten, now and previously
                                            20-21  variance of the best five, now and previously

Six against five in 16 and 17 is what the original does.  A guess is new if its page was not among the ten before; its
change is then its score.  Variances are those of the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from sqa.core.types import Guess

N_GUESSES = 10
N_FEATURES = 22
Signal = Literal["share", "score", "margin"]  # what a fixed threshold can look at
SIGNALS: tuple[Signal, ...] = get_args(Signal)


def features(history: Sequence[Sequence[Guess]]) -> np.ndarray:
    """(n, 22) float32 for n steps of one question; row t depends on history[: t + 1] only."""
    n = len(history)
    scores = np.zeros((n + 1, N_GUESSES))  # row 0: before the first step
    is_new = np.zeros((n, N_GUESSES))
    change = np.zeros((n, N_GUESSES))
    previous: dict[str, float] = {}
    for step, guesses in enumerate(history):
        best = {guess.page: guess.score for guess in guesses[:N_GUESSES]}
        for place, (page, score) in enumerate(best.items()):
            scores[step + 1, place] = score
            is_new[step, place] = page not in previous
            change[step, place] = score - previous.get(page, 0.0)
        previous = best
    now, before = scores[1:], scores[:-1]
    columns = [
        now[:, :3],
        is_new[:, :3],
        change[:, :3],
        now[:, :2] - now[:, 1:3],
        now[:, :2] - before[:, :2],
        is_new[:, :5].sum(1, keepdims=True),
        now.mean(1, keepdims=True),
        before.mean(1, keepdims=True),
        now[:, :6].mean(1, keepdims=True),
        before[:, :5].mean(1, keepdims=True),
        now.var(1, keepdims=True),
        before.var(1, keepdims=True),
        now[:, :5].var(1, keepdims=True),
        before[:, :5].var(1, keepdims=True),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def share(guesses: Sequence[Guess]) -> float:
    """The top guess's part of the sum of the best ten scores, 0..1; 0 without guesses or with a sum of 0."""
    total = sum(guess.score for guess in guesses[:N_GUESSES])
    return guesses[0].score / total if total > 0 else 0.0


def signals(guesses: Sequence[Guess]) -> tuple[float, float, float]:
    """SIGNALS of one step: the share of the best ten, the top score, and by how much it leads.

    A share of fewer than ten and a lead over nobody are -inf: they would be largest where least is known.
    """
    if not guesses:
        return (-np.inf, -np.inf, -np.inf)
    lead = guesses[0].score - guesses[1].score if len(guesses) > 1 else -np.inf
    return (share(guesses) if len(guesses) >= N_GUESSES else -np.inf, guesses[0].score, lead)
