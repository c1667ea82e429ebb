"""The networks of a learnt buzzer, in numpy: logistic regression, a layer of rectified units, a GRU, an LSTM.

Each turns the standardised features of a step into what the output layer sees, and that is one weighted sum.  They go
one step after another, so that a step's logit is the same to the last bit whether the question goes on after it or not.

The state of a recurrent one at step t is made of steps 1..t, so it knows how the guesses came about and not only what
they are now.  Which cell it is, the tensors say: the gates of a GRU are three times its units, those of an LSTM four
times.  They say too whether the output sees the features of the step beside the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

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
