"""Learnt weights that map candidates' features to probabilities, and selection of the best candidates of each step.

Standardised features -> rectified units -> a logit, and a softmax over the candidates of a step and "none of them".
"""

from collections.abc import Mapping, Sequence

import numpy as np

from sqa.core.types import Guess

CLIP = 8.0  # limit of standardised features, in standard deviations

Tensors = Mapping[str, np.ndarray]


class Scorer:
    """The weights for D features per candidate."""

    def __init__(self, tensors: Tensors, numbers: int) -> None:
        """Store the tensors; raises ValueError for wrong names or shapes, or deviations that are not above 0.

        The tensors are mean (D,), deviation (D,), hidden.weight (H, D), hidden.bias (H,), output.weight (1, H) and
        output.bias (1,).
        """
        d, h = numbers, len(tensors.get("hidden.bias", ()))
        expected = {"mean": (d,), "deviation": (d,), "hidden.weight": (h, d), "hidden.bias": (h,)}
        expected |= {"output.weight": (1, h), "output.bias": (1,)}
        if {name: array.shape for name, array in tensors.items()} != expected or not (tensors["deviation"] > 0).all():
            raise ValueError(f"weights of {d} numbers have {expected}, deviations above 0")
        self.tensors = dict(tensors)
        self._double = {name: array.astype(np.float64) for name, array in tensors.items()}

    def chances(self, rows: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the probability of each of M candidates; with "none of them", those of a step sum to 1.

        `rows`, of shape (M + T, D), has the features of the candidates, then those of "none of them" of every step.
        `step` has the step of each candidate.
        """
        t, m = self._double, len(step)
        rows = np.clip((rows - t["mean"]) / t["deviation"], -CLIP, CLIP)
        hidden = np.maximum(rows @ t["hidden.weight"].T + t["hidden.bias"], 0)
        logits = hidden @ t["output.weight"][0] + t["output.bias"][0]  # (M + T,)
        highest = logits[m:].copy()  # (T,)
        np.maximum.at(highest, step, logits[:m])
        raised = np.exp(logits[:m] - highest[step])
        total = np.bincount(step, raised, len(highest)) + np.exp(logits[m:] - highest)
        return raised / total[step]


def best(scores: np.ndarray, pages: Sequence[str], step: np.ndarray, steps: int, n: int) -> list[list[Guess]]:
    """Return the best `n` candidates of each step, ties by title; `step` has each candidate's step, ascending."""
    ends = np.searchsorted(step, np.arange(steps + 1))
    listed = []
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        near = scores[start:end]
        if 0 < n < end - start:  # keep all that tie with the last selected one, so that titles decide
            indices = start + np.flatnonzero(near >= np.partition(near, end - start - n)[end - start - n])
        else:
            indices = np.arange(start, end)
        pairs = sorted((-score, pages[i]) for i, score in zip(indices.tolist(), scores[indices].tolist(), strict=True))
        listed.append([Guess(page, -score) for score, page in pairs[: max(n, 0)]])
    return listed
