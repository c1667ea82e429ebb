"""Expected wins of answering at the first step whose score reaches a threshold, for many thresholds at once.

With `at_end`, unanswered questions are answered at the last step, where a wrong answer costs nothing.
"""

from collections.abc import Sequence

import numpy as np

from buzzers.histories import GuessHistory, Histories
from sqa.metrics.qa import CURVES

CURVE = CURVES["qanta2018"]
Scores = Sequence[np.ndarray]  # one array of shape (n,) per question
GRID = 99  # number of candidate thresholds, which are quantiles of the scores


def first_answers(history: GuessHistory, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return, for each threshold, the first step with a guess whose score reaches it, or the number of steps."""
    highest = np.maximum.accumulate(np.where(history.guessed, scores, -np.inf))  # (n,), nondecreasing
    return np.searchsorted(highest, thresholds, side="left")


def wins_at(history: GuessHistory, steps: np.ndarray, at_end: bool = False) -> np.ndarray:
    """Return the expected wins of answering at each of `steps`.

    A step equal to the number of steps means no answer, which wins nothing or, with `at_end`, as much as the last step.
    """
    worth = np.append(np.where(history.right, CURVE(history.fraction), 0.0), 0.0)  # (n + 1,)
    if at_end and len(history.right):
        worth[-1] = worth[-2]
    return worth[steps]


def wins(histories: Histories, scores: Scores, thresholds: np.ndarray, at_end: bool = False) -> np.ndarray:
    """Return the expected wins of each question at each threshold, an array of shape (questions, thresholds)."""
    pairs = zip(histories, scores, strict=True)
    return np.stack([wins_at(history, first_answers(history, s, thresholds), at_end) for history, s in pairs])


def grid(scores: Scores, size: int = GRID) -> np.ndarray:
    """Return candidate thresholds: at most `size` distinct, increasing quantiles of the questions' highest scores."""
    highest = np.array([scores_of.max() for scores_of in scores])
    finite = highest[np.isfinite(highest)]
    return np.unique(np.quantile(finite, np.linspace(0, 1, size))) if len(finite) else np.zeros(1)


def best_threshold(histories: Histories, scores: Scores, at_end: bool = False) -> tuple[float, float]:
    """Return the best threshold of `grid`, the lowest if several are best, and its mean expected wins."""
    tried = grid(scores)
    means = wins(histories, scores, tried, at_end).mean(0)
    best = int(means.argmax())
    return float(tried[best]), float(means[best])
