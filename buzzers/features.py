"""What a trained buzzer sees at each step: QANTA's 22 numbers (its `vector_converter_0`), and 23 of ours.

`features`, with p1..p10 the scores of the ten best guesses (0 where there are fewer) and "previous" the step before (0
at first):

    0-2    p1, p2, p3                       13     how many of the best five were not among the previous ten
    3-5    1 if guess 1, 2, 3 is new        14-15  mean of the ten, now and previously
    6-8    change of its score, 1, 2, 3     16     mean of the best SIX
    9-10   p1 - p2, p2 - p3                 17     previous mean of the best five
    11-12  p1, p2 minus the previous ones   18-19  variance of the ten, now and previously
                                            20-21  variance of the best five, now and previously

Six against five in 16 and 17 is what the original does.  A guess is new if its page was not among the ten before; its
change is then its score.  Variances are those of the population.

`shape`, mostly free of the guesser's scale: with m = p1 - p2, and t = 1, 2, ... the words read:

    0-1    ln t, t / 100                            11  ln(1 + steps in a row with this top guess)
    2-4    parts of p1, p2, p3 in the sum of ten    12  ln(1 + different top guesses so far)
    5      entropy of the ten parts                 13  part of the steps so far that had this top guess
    6-7    ln sum_i exp((p_i - p1) / T), T = 1, 3   14  ln(1 + steps since this page was first among the ten)
    8-9    ln(p1 + .0001), ln(m + .001)             15  p1 / t
    10     m / p1                                   16  m / sqrt(t)
                                                    17-20  p1 and m: change over 5 and over 15 steps
                                                    21  guesses / 10
                                                    22  ln(p1 / (1 - p1)), with p1 kept in .000001 .. .999

6 and 7 are what a softmax over scores would give, 22 is for guessers whose scores are chances.  The length of
the question is unknown in advance, so no number here depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from sqa.core.types import Guess

N_GUESSES = 10
N_FEATURES = 22
N_SHAPE = 23
LAGS = (5, 15)  # steps, of `shape`
_TINY = 1e-6
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
        for rank, (page, score) in enumerate(best.items()):
            scores[step + 1, rank] = score
            is_new[step, rank] = page not in previous
            change[step, rank] = score - previous.get(page, 0.0)
        previous = best
    current, before = scores[1:], scores[:-1]
    columns = [
        current[:, :3],
        is_new[:, :3],
        change[:, :3],
        current[:, :2] - current[:, 1:3],
        current[:, :2] - before[:, :2],
        is_new[:, :5].sum(1, keepdims=True),
        current.mean(1, keepdims=True),
        before.mean(1, keepdims=True),
        current[:, :6].mean(1, keepdims=True),
        before[:, :5].mean(1, keepdims=True),
        current.var(1, keepdims=True),
        before.var(1, keepdims=True),
        current[:, :5].var(1, keepdims=True),
        before[:, :5].var(1, keepdims=True),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def share(guesses: Sequence[Guess]) -> float:
    """The top guess's part of the sum of the best ten scores, 0..1; 0 without guesses or with a sum of 0."""
    total = sum(guess.score for guess in guesses[:N_GUESSES])
    return guesses[0].score / total if total > 0 else 0.0


def signals(guesses: Sequence[Guess]) -> tuple[float, float, float]:
    """SIGNALS of one step: the share of the best ten, the top score, and by how much it leads.

    A share of fewer than ten and a lead of a single guess are -inf: they would be largest where least is known.
    """
    if not guesses:
        return (-np.inf, -np.inf, -np.inf)
    lead = guesses[0].score - guesses[1].score if len(guesses) > 1 else -np.inf
    return (share(guesses) if len(guesses) >= N_GUESSES else -np.inf, guesses[0].score, lead)


def shape(history: Sequence[Sequence[Guess]]) -> np.ndarray:
    """(n, 23) float32 for n steps of one question; row t depends on history[: t + 1] only."""
    n = len(history)
    scores, count = np.zeros((n, N_GUESSES)), np.zeros(n)
    for step, guesses in enumerate(history):
        best = [guess.score for guess in guesses[:N_GUESSES]]
        scores[step, : len(best)], count[step] = best, len(best)
    t = np.arange(1, n + 1)
    top, margin = scores[:, 0], scores[:, 0] - scores[:, 1]  # (n,)
    parts = scores / (scores.sum(1, keepdims=True) + _TINY)  # (n, 10)
    below = scores - top[:, None]  # (n, 10), 0 or less
    chance = np.clip(top, _TINY, 0.999)
    columns = [
        np.log(t),
        t / 100,
        *parts[:, :3].T,
        -(parts * np.log(parts + 1e-9)).sum(1),
        np.log(np.exp(below).sum(1)),
        np.log(np.exp(below / 3).sum(1)),
        np.log(np.maximum(top, 0) + 1e-4),
        np.log(margin + 1e-3),
        margin / (top + _TINY),
        *_loyalty(history),
        top / t,
        margin / np.sqrt(t),
        *(_change(series, lag) for series in (top, margin) for lag in LAGS),
        count / N_GUESSES,
        np.log(chance / (1 - chance)),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _loyalty(history: Sequence[Sequence[Guess]]) -> np.ndarray:
    """(4, n): how long and how often the top guess has been what it is, columns 11-14; 0 without a guess."""
    columns = np.zeros((4, len(history)))
    times: dict[str, int] = {}  # page -> steps at the top
    first: dict[str, int] = {}  # page -> step at which it came among the ten
    last, row = None, 0
    for step, guesses in enumerate(history):
        for guess in guesses[:N_GUESSES]:
            first.setdefault(guess.page, step)
        page = guesses[0].page if guesses else None
        if page is not None:
            row = row + 1 if page == last else 1
            times[page] = times.get(page, 0) + 1
            columns[:, step] = np.log1p(row), 0, times[page] / (step + 1), np.log1p(step - first[page])
        columns[1, step] = np.log1p(len(times))
        last = page
    return columns


def _change(series: np.ndarray, lag: int) -> np.ndarray:
    """series[t] - series[t - lag], (n,); the series is 0 before its start."""
    before = np.zeros_like(series)
    before[lag:] = series[:-lag]
    return series - before
