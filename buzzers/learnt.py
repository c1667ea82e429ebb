"""The learnt buzzers `logistic`, `mlp` and `recurrent`: one, but for the network between features and chance.

Standardised features -> logit -> calibrated chance of being right -> answer or wait.

The networks, in numpy: logistic regression, a layer of rectified units, a GRU, an LSTM.  Each turns the features of a
step into what the output layer sees, and that is one weighted sum.  They go one step after another, so that a step's
logit is the same to the last bit whether the question goes on after it or not.  The state of a recurrent one at step t
is made of steps 1..t, so it knows how the guesses came about and not only what they are now.  Which cell it is, the
tensors say: the gates of a GRU are three times its units, those of an LSTM four times.  They say too whether the output
sees the features of the step beside the state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from buzzers import calibration
from buzzers import features as qanta
from buzzers.features import N_SHAPE, shape
from sqa.core.errors import DataError, Share, checked
from sqa.core.types import Buzz, Guess
from sqa.files.model_files import folder_digest, read_tensors, resolve_model, write_tensors

Tensors = Mapping[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]
GATES = {"gru": 3, "lstm": 4}


@dataclass(frozen=True, slots=True)
class Network:
    """A kind of network: how it is called, and what is before its output layer."""

    kind: str  # "mlp"
    inner: Callable[[int, Tensors], tuple[Shapes, int]]  # (features, tensors) -> shape of each tensor, numbers it gives
    seen: Callable[[Tensors, np.ndarray], np.ndarray]  # (tensors, (n, d) standardised) -> (n, numbers)

    def shapes(self, width: int, tensors: Tensors) -> Shapes:
        """The shape that each tensor must have for `width` features.  ValueError, KeyError: there is none."""
        shapes, seen = self.inner(width, tensors)
        return shapes | {"output.weight": (1, seen), "output.bias": (1,)}

    def logits(self, tensors: Tensors, rows: np.ndarray) -> np.ndarray:
        """(n, d) -> (n,)."""
        return affine(self.seen(tensors, rows), tensors["output.weight"], tensors["output.bias"])[:, 0]


def affine(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """(n, d), (h, d), (h,) -> (n, h), each row by a product of its own: the same bits whatever n is."""
    return np.matmul(rows[:, None, :], weight.T)[:, 0] + bias


def _rectified_shapes(width: int, tensors: Tensors) -> tuple[Shapes, int]:
    (units,) = tensors["hidden.bias"].shape
    return {"hidden.weight": (units, width), "hidden.bias": (units,)}, units


def _rectified(tensors: Tensors, rows: np.ndarray) -> np.ndarray:
    return np.maximum(affine(rows, tensors["hidden.weight"], tensors["hidden.bias"]), 0)


def _state_shapes(width: int, tensors: Tensors) -> tuple[Shapes, int]:
    units, gates = tensors["cell.weight_hh_l0"].shape[-1], len(tensors["cell.bias_hh_l0"])
    if gates not in (units * factor for factor in GATES.values()):
        raise ValueError(f"{gates} gates for {units} units: neither a GRU nor an LSTM")
    shapes: Shapes = {
        "cell.weight_ih_l0": (gates, width),
        "cell.weight_hh_l0": (gates, units),
        "cell.bias_ih_l0": (gates,),
        "cell.bias_hh_l0": (gates,),
    }
    return shapes, units + width if tensors["output.weight"].shape[-1] > units else units


def _states(tensors: Tensors, rows: np.ndarray) -> np.ndarray:
    """The states (n, H), step after step from one of zeros, the features beside them if the output sees these."""
    inputs = affine(rows, tensors["cell.weight_ih_l0"], tensors["cell.bias_ih_l0"])  # (n, G H)
    weight, bias = tensors["cell.weight_hh_l0"], tensors["cell.bias_hh_l0"]
    units = weight.shape[1]
    step = _gru if len(bias) == GATES["gru"] * units else _lstm
    hidden, cell = np.zeros(units, np.float32), np.zeros(units, np.float32)
    states = np.zeros((len(rows), units), np.float32)
    for index, gates in enumerate(inputs):
        hidden, cell = step(gates, weight @ hidden + bias, hidden, cell)
        states[index] = hidden
    return np.concatenate([states, rows], axis=1)[:, : tensors["output.weight"].shape[1]]


def _gru(x: np.ndarray, h: np.ndarray, hidden: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of torch's GRU: gates of input and state (3 H,), state (H,) -> the next state (H,)."""
    n = len(hidden)
    reset, update = np.split(_sigmoid(x[: 2 * n] + h[: 2 * n]), 2)
    new = np.tanh(x[2 * n :] + reset * h[2 * n :])
    return (1 - update) * new + update * hidden, cell


def _lstm(x: np.ndarray, h: np.ndarray, hidden: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of torch's LSTM: gates of input and state (4 H,), state and cell (H,) -> the next two."""
    enter, forget, new, leave = np.split(x + h, 4)
    cell = _sigmoid(forget) * cell + _sigmoid(enter) * np.tanh(new)
    return _sigmoid(leave) * np.tanh(cell), cell


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


LOGISTIC = Network("logistic", lambda width, tensors: ({}, width), lambda tensors, rows: rows)
MLP = Network("mlp", _rectified_shapes, _rectified)
RECURRENT = Network("recurrent", _state_shapes, _states)


VERSION = 2  # of the files and of the code that turns guesses into buzzes
WIDTHS = {"qanta": qanta.N_FEATURES, "all": qanta.N_FEATURES + N_SHAPE}  # numbers per step by set of features
CLIP = 8.0  # standardised features are kept within so many deviations

End = Literal["answer", "silent"]  # what a question that ends unanswered gets: the top guess, or nothing (the paper)
# A buzzer cannot know that a question is over, so which of the two it gets is the metric's (`ew`, `ew@answer-at-end`).


@dataclass(frozen=True, slots=True)
@checked
class LearntConfig:
    """What `buzzer: {name: mlp, ...}` takes, and `logistic` and `recurrent`."""

    model: str = "bm25"  # the guesser it was trained for (bundled: bm25, gru), or a model folder
    threshold: Share | None = None  # chance of being right at which to answer, 0..1; null = the model's own
    end: End | None = field(
        default=None, metadata={"written": "if any"}
    )  # the rule whose best threshold it takes: silent (the paper's; null) or answer (ew@answer-at-end)


@dataclass(frozen=True, slots=True)
class Card:
    """What a model's config.json says beside kind and version."""

    guesser: str  # whose guesses it learnt from
    features: str  # a key of WIDTHS
    threshold: float  # chance at which it answers
    training: Mapping[str, Any]  # objective, seed, ...; for people
    end: End = "silent"  # the rule that the threshold is the best one for
    thresholds: Mapping[str, float] = field(default_factory=dict)  # the best for each End, where both are known

    @classmethod
    def of(cls, config: Mapping[str, Any], folder: Path) -> Card:
        """From config.json; DataError if a field is missing or of another type."""
        types = {"guesser": str, "features": str, "threshold": float, "training": dict}
        wrong = [name for name, type_ in types.items() if not isinstance(config.get(name), type_)]
        if wrong or config["features"] not in WIDTHS:
            problem = ", ".join(wrong) or "features"
            raise DataError(f"{folder}: config.json: {problem}: not what a trained buzzer has; train it again")
        end, thresholds = config.get("end", "silent"), config.get("thresholds", {})
        fits = isinstance(thresholds, dict) and all(isinstance(value, float) for value in thresholds.values())
        if end not in ("answer", "silent") or not fits:
            raise DataError(f"{folder}: config.json: end, thresholds: not what a trained buzzer has; train it again")
        return cls(**{name: config[name] for name in types}, end=end, thresholds=thresholds)

    def chosen(self, threshold: float | None, end: End | None) -> Card:
        """The card with a threshold, or else the best one for `end`, "silent" if not given, where that is known."""
        end = end or "silent"
        best = self.threshold if end == self.end else self.thresholds.get(end, self.threshold)
        return replace(self, threshold=best if threshold is None else threshold, end=end)


class LearntBuzzer:
    """A trained network and the chance at which it answers."""

    def __init__(self, network: Network, tensors: Tensors, card: Card, digest: str = "") -> None:
        """`tensors`: float32, mean (d,), deviation (d,), calibration (2, k) (`calibration.fit`), and the
        network's own.  `digest` names them in the fingerprint.  ValueError for tensors of other names or shapes."""
        width = WIDTHS[card.features]
        expected: dict[str, tuple[int, ...]] = {
            "mean": (width,),
            "deviation": (width,),
            "calibration": (2, tensors["calibration"].shape[-1]),
        } | network.shapes(width, tensors)
        if {name: array.shape for name, array in tensors.items()} != expected:
            raise ValueError(f"a {network.kind} buzzer of {width} features has {expected}")
        self.network, self.tensors, self.card, self._digest = network, tensors, card, digest

    @property
    def trained_for(self) -> str:
        """The guesser whose guesses it learnt from."""
        return self.card.guesser

    @property
    def threshold(self) -> float:
        """Chance of being right at which it answers, 0..1."""
        return self.card.threshold

    def chances(self, rows: np.ndarray) -> np.ndarray:
        """(n, 45) rows of `all_features` for one question -> (n,) float64, the chance that the top guess is right."""
        t = self.tensors
        rows = rows[:, : WIDTHS[self.card.features]]
        logits = self.network.logits(t, standardise(rows, t["mean"], t["deviation"]))
        return calibration.apply(t["calibration"], logits)

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """One buzz per step. Without a guess there is nothing to answer: chance 0."""
        if not history:
            return []
        rows = qanta.features(history) if self.card.features == "qanta" else all_features(history)
        chances = self.chances(rows).tolist()
        return [
            Buzz(chance, chance >= self.threshold) if guesses else Buzz(0.0, False)
            for chance, guesses in zip(chances, history, strict=True)
        ]

    def fingerprint(self) -> str:
        """sha256 of the model's files, the code version and the threshold."""
        named = f"{self.network.kind} {VERSION} {self._digest} {self.threshold!r}"
        return hashlib.sha256(named.encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json."""
        card = {name: getattr(self.card, name) for name in ("guesser", "features", "threshold", "training")}
        if self.card.thresholds:
            card |= {"end": self.card.end, "thresholds": self.card.thresholds}
        write_tensors(folder, self.tensors, {"kind": f"buzzer-{self.network.kind}", "version": VERSION} | card)


def all_features(history: Sequence[Sequence[Guess]]) -> np.ndarray:
    """(n, 45) float32: QANTA's 22 features, then the 23 of `buzzers.features`."""
    return np.concatenate([qanta.features(history), shape(history)], axis=1)


def standardise(rows: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """(n, d) features in deviations from the mean, within -8..8."""
    return np.clip((rows - mean) / deviation, -CLIP, CLIP)


def load(network: Network, folder: Path, threshold: float | None = None, end: End | None = None) -> LearntBuzzer:
    """Read what `save` wrote; DataError if it is damaged."""
    tensors, config = read_tensors(folder, f"buzzer-{network.kind}", VERSION)
    card = Card.of(config, folder).chosen(threshold, end)
    try:
        return LearntBuzzer(network, tensors, card, folder_digest(folder))
    except (ValueError, KeyError) as error:
        raise DataError(f"{folder}: not a {network.kind} buzzer ({error}); restore or train it again") from error


def bundled(network: Network, config: LearntConfig) -> LearntBuzzer:
    """The bundled buzzer of that kind for the guesser `model`, or the one in the folder `model`.  ConfigError."""
    folder = resolve_model(config.model, prefix=f"buzzer-{network.kind}-")
    return load(network, folder, config.threshold, config.end)


def logistic(config: LearntConfig) -> LearntBuzzer:
    """A weighted sum of the features of a step."""
    return bundled(LOGISTIC, config)


def mlp(config: LearntConfig) -> LearntBuzzer:
    """One layer of rectified units over the features of a step."""
    return bundled(MLP, config)


def recurrent(config: LearntConfig) -> LearntBuzzer:
    """A GRU or an LSTM that reads the features of one step after the other."""
    return bundled(RECURRENT, config)
