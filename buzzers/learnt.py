"""The learnt buzzers `logistic`, `mlp` and `recurrent`, which differ only in their networks.

Standardised features -> logit -> calibrated probability of being right -> answer or wait.

The networks run in numpy: logistic regression, a layer of rectified units, and buzzers/recurrent.py.  Each network maps
the features of a step to the inputs of the output layer, which is one weighted sum.  Steps are computed one after
another, so later steps do not change a step's logit, not even in its last bit.

The features of a step are QANTA's 22 numbers (its `vector_converter_0`) and 23 numbers of this project.

`features`, where p1..p10 are the scores of the ten best guesses (0 if there are fewer) and "previous" means the step
before (0 at first):

    0-2    p1, p2, p3                       13     how many of the best five were not among the previous ten
    3-5    1 if guess 1, 2, 3 is new        14-15  mean of the ten, now and previously
    6-8    change of its score, 1, 2, 3     16     mean of the best SIX
    9-10   p1 - p2, p2 - p3                 17     previous mean of the best five
    11-12  p1, p2 minus the previous ones   18-19  variance of the ten, now and previously
                                            20-21  variance of the best five, now and previously

As in the original, column 16 uses six guesses and column 17 five.  A guess is new if its page was not among the
previous ten; its change is then its score.  Variances are population variances.

`shape`, mostly independent of the guesser's scale, where m = p1 - p2 and t = 1, 2, ... is the number of words read:

    0-1    ln t, t / 100                            11  ln(1 + steps in a row with this top guess)
    2-4    shares of p1, p2, p3 in the sum of ten   12  ln(1 + different top guesses so far)
    5      entropy of the ten shares                13  share of the steps so far that had this top guess
    6-7    ln sum_i exp((p_i - p1) / T), T = 1, 3   14  ln(1 + steps since this page was first among the ten)
    8-9    ln(p1 + .0001), ln(m + .001)             15  p1 / t
    10     m / p1                                   16  m / sqrt(t)
                                                    17-20  p1 and m: change over 5 and over 15 steps
                                                    21  guesses / 10
                                                    22  ln(p1 / (1 - p1)), with p1 kept in .000001 .. .999

Features 6 and 7 correspond to a softmax over scores; feature 22 is for guessers whose scores are probabilities.  The
length of the question is unknown in advance, so no feature depends on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from sqa.core import Buzz, DataError, File, Guess, Share, checked
from sqa.files import converted, folder_digest, read_tensors, resolve_model, write_tensors

Tensors = Mapping[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]
N_GUESSES = 10
N_FEATURES = 22
N_SHAPE = 23
LAGS = (5, 15)  # distances in steps between the scores that `shape` compares
_TINY = 1e-6


# --------------------------------------------------------------------------------------------------- features of a step


def features(history: Sequence[Sequence[Guess]]) -> np.ndarray:
    """Return QANTA's features of n steps, float32 of shape (n, 22); row t depends only on history[: t + 1]."""
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
        *(rows[:, :3] for rows in (current, is_new, change)),
        current[:, :2] - current[:, 1:3],
        current[:, :2] - before[:, :2],
        is_new[:, :5].sum(1, keepdims=True),
        *(rows.mean(1, keepdims=True) for rows in (current, before, current[:, :6], before[:, :5])),
        *(rows.var(1, keepdims=True) for rows in (current, before, current[:, :5], before[:, :5])),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def shape(history: Sequence[Sequence[Guess]]) -> np.ndarray:
    """Return the `shape` features of n steps, float32 of shape (n, 23); row t depends only on history[: t + 1]."""
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
        *(np.log(np.exp(below / temperature).sum(1)) for temperature in (1, 3)),
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
    """Return features 11-14, of shape (4, n), about repeated top guesses; all but 12 are 0 at steps without a guess."""
    columns = np.zeros((4, len(history)))
    times: dict[str, int] = {}  # page -> number of steps on top
    first: dict[str, int] = {}  # page -> first step among the ten
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
    """Return series[t] - series[t - lag] for each t; the series is 0 before its start."""
    before = np.zeros_like(series)
    before[lag:] = series[:-lag]
    return series - before


def all_features(history: Sequence[Sequence[Guess]]) -> np.ndarray:
    """Return all features of n steps, float32 of shape (n, 45): QANTA's 22, then the 23 of `shape`."""
    return np.concatenate([features(history), shape(history)], axis=1)


# ----------------------------------------------------------------------------------------------------------- networks


@dataclass(frozen=True, slots=True)
class Network:
    """A kind of network: its name, and the layers before the output layer."""

    kind: str  # "mlp"
    inner: Callable[[int, Tensors], tuple[Shapes, int]]  # (features, tensors) -> (shapes, outputs)
    seen: Callable[[Tensors, np.ndarray], np.ndarray]  # (tensors, (n, d) features) -> (n, outputs)

    def shapes(self, width: int, tensors: Tensors) -> Shapes:
        """Return the required shape of each tensor for `width` features; raises ValueError or KeyError if none fits."""
        shapes, seen = self.inner(width, tensors)
        return shapes | {"output.weight": (1, seen), "output.bias": (1,)}

    def logits(self, tensors: Tensors, rows: np.ndarray) -> np.ndarray:
        """Return logits of shape (n,) for standardised features of shape (n, d)."""
        return affine(self.seen(tensors, rows), tensors["output.weight"], tensors["output.bias"])[:, 0]


def affine(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return rows @ weight.T + bias, computed row by row, so that a row's result does not depend on the others."""
    return np.matmul(rows[:, None, :], weight.T)[:, 0] + bias


def _rectified_shapes(width: int, tensors: Tensors) -> tuple[Shapes, int]:
    (units,) = tensors["hidden.bias"].shape
    return {"hidden.weight": (units, width), "hidden.bias": (units,)}, units


def _rectified(tensors: Tensors, rows: np.ndarray) -> np.ndarray:
    return np.maximum(affine(rows, tensors["hidden.weight"], tensors["hidden.bias"]), 0)


LOGISTIC = Network("logistic", lambda width, tensors: ({}, width), lambda tensors, rows: rows)
MLP = Network("mlp", _rectified_shapes, _rectified)


# ------------------------------------------------------------------------------------------------------------- buzzers

VERSION = 2  # version of the files, and of the code that turns guesses into buzzes
WIDTHS = {"qanta": N_FEATURES, "all": N_FEATURES + N_SHAPE}  # set of features -> number of features per step
SLOPE = 0.01  # slope added so that the calibrated value always increases
ROUNDING = 1e-5  # rounding error of float32 logits
CLIP = 8.0  # limit of standardised features, in standard deviations

# Rule for a question without a buzz: answer it with the last top guess, or not at all (the paper).  A buzzer cannot
# detect the end of a question, so the metric selects the rule (`ew@answer-at-end`, `ew`).
End = Literal["answer", "silent"]


@dataclass(frozen=True, slots=True)
@checked
class LearntConfig:
    """Options of `buzzer: {name: mlp, ...}`, and of `logistic` and `recurrent`."""

    model: Annotated[File, "guesser whose guesses trained the buzzer (bundled: bm25, gru), or a model folder"] = "bm25"
    threshold: Annotated[
        Share | None, "probability of being right at which to answer, 0..1; null = the model's own"
    ] = None
    end: Annotated[
        End | None, "rule for which the threshold is optimal: silent (the paper's; null) or answer (ew@answer-at-end)"
    ] = field(default=None, metadata={"written": "if any"})
    device: Annotated[Literal["auto", "cpu"], "computed with numpy"] = "cpu"
    dtype: Annotated[Literal["auto", "float32"], "computed with numpy"] = "auto"


@dataclass(frozen=True, slots=True)
class Card:
    """Contents of a model's config.json except kind and version."""

    guesser: str  # guesser whose guesses trained the buzzer
    features: Literal["qanta", "all"]  # a key of WIDTHS
    threshold: float  # probability at which the buzzer answers
    training: Mapping[str, Any]  # objective, seed, ...; informative only
    end: End = "silent"  # rule for which the threshold is optimal
    thresholds: Mapping[str, float] = field(default_factory=dict)  # optimal threshold per End, if both are known

    def chosen(self, threshold: float | None, end: End | None) -> Card:
        """Return the card with a threshold: the given one, else the optimum for `end` ("silent" if None) if known."""
        end = end or "silent"
        best = self.threshold if end == self.end else self.thresholds.get(end, self.threshold)
        return replace(self, threshold=best if threshold is None else threshold, end=end)


class LearntBuzzer:
    """A trained network and the probability at which it answers."""

    def __init__(self, network: Network, tensors: Tensors, card: Card, digest: str = "") -> None:
        """Store a network and its tensors.

        Args:
            tensors: float32 tensors: mean (d,), deviation (d,), calibration (2, k) (buzzers/train.py), and those
                of the network.
            digest: Digest that represents the tensors in the fingerprint.

        Raises:
            ValueError: If names, shapes or types are wrong, a deviation is not above 0, or the calibration decreases.
        """
        width = WIDTHS[card.features]
        expected = network.shapes(width, tensors)
        expected |= {"mean": (width,), "deviation": (width,), "calibration": (2, tensors["calibration"].shape[-1])}
        if {name: array.shape for name, array in tensors.items()} != expected:
            raise ValueError(f"a {network.kind} buzzer of {width} features has {expected}")
        at, height = tensors["calibration"]
        rises = len(at) and (np.diff(at) > 0).all() and (np.diff(height + SLOPE * at) >= -ROUNDING).all()
        if not rises or not (tensors["deviation"] > 0).all() or any(a.dtype.kind != "f" for a in tensors.values()):
            raise ValueError(
                "deviations must be above 0, the calibration must increase, and all tensors must contain floats"
            )
        self.network, self.tensors, self.card, self._digest = network, tensors, card, digest

    @property
    def trained_for(self) -> str:
        """Name of the guesser whose guesses trained the buzzer."""
        return self.card.guesser

    @property
    def threshold(self) -> float:
        """Probability of being right at which the buzzer answers, 0..1."""
        return self.card.threshold

    def chances(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability at each of n steps that the top guess is right, for features of shape (n, 45)."""
        t = self.tensors
        rows = rows[:, : WIDTHS[self.card.features]]
        logits = self.network.logits(t, standardise(rows, t["mean"], t["deviation"]))
        return calibrated(t["calibration"], logits)

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """Return one buzz per step; a step without a guess has confidence 0."""
        rows = features(history) if self.card.features == "qanta" else all_features(history)
        steps = zip(self.chances(rows).tolist(), history, strict=True)
        return [Buzz(chance, chance >= self.threshold) if guesses else Buzz(0.0, False) for chance, guesses in steps]

    def fingerprint(self) -> str:
        """Return the sha256 of the model's files, the code version and the threshold."""
        return hashlib.sha256(f"{self.network.kind} {VERSION} {self._digest} {self.threshold!r}".encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""
        card = {name: getattr(self.card, name) for name in ("guesser", "features", "threshold", "training")}
        if self.card.thresholds:
            card |= {"end": self.card.end, "thresholds": self.card.thresholds}
        write_tensors(folder, self.tensors, {"kind": f"buzzer-{self.network.kind}", "version": VERSION} | card)


def calibrated(knots: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Return the calibrated probabilities of logits, float64; they increase with the logit."""
    at, height = knots.astype(np.float64)
    logits = logits.astype(np.float64)
    return np.exp(-np.logaddexp(0, -(np.interp(logits, at, height) + SLOPE * logits)))


def standardise(rows: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return features in standard deviations from the mean, clipped to -8..8."""
    return np.clip((rows - mean) / deviation, -CLIP, CLIP)


def load(network: Network, folder: Path, threshold: float | None = None, end: End | None = None) -> LearntBuzzer:
    """Read a folder written by `save`; raises DataError if it is damaged."""
    tensors, config = read_tensors(folder, f"buzzer-{network.kind}", VERSION)
    card = converted(f"{folder}: config.json", config, Card).chosen(threshold, end)
    try:
        return LearntBuzzer(network, tensors, card, folder_digest(folder))
    except (ValueError, KeyError) as error:
        raise DataError(f"{folder}: not a {network.kind} buzzer ({error}); restore or train it again") from error


def bundled(network: Network, config: LearntConfig) -> LearntBuzzer:
    """Return the bundled buzzer with this network for the guesser `model`, or the one in the folder `model`.

    Raises ConfigError if neither exists.
    """
    folder = resolve_model(config.model, prefix=f"buzzer-{network.kind}-")
    return load(network, folder, config.threshold, config.end)


def logistic(config: LearntConfig) -> LearntBuzzer:
    """Return a buzzer that computes a weighted sum of a step's features."""
    return bundled(LOGISTIC, config)


def mlp(config: LearntConfig) -> LearntBuzzer:
    """Return a buzzer that applies one layer of rectified units to a step's features."""
    return bundled(MLP, config)
