"""The recurrent buzzer: a GRU or an LSTM that reads the features of one step after the other.

Its state at step t is made of steps 1..t, so it knows how the guesses came about and not only what they are now.
Which cell it is, the tensors say: the gates of a GRU are three times its units, those of an LSTM four times.  They say
too whether the output sees the features of the step beside the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from buzzers.learnt import End, LearntBuzzer, Network, Tensors, affine, bundled, check_threshold

GATES = {"gru": 3, "lstm": 4}


@dataclass(frozen=True, slots=True)
class RecurrentConfig:
    """What `buzzer: {name: recurrent, ...}` takes."""

    model: str = "bm25"  # the guesser it was trained for (bundled: bm25, gru), or a model folder
    threshold: float | None = None  # chance of being right at which to answer, 0..1; null = the model's own
    end: End | None = field(
        default=None, metadata={"written": "if any"}
    )  # the rule whose best threshold it takes: silent (the paper's; null) or answer (ew@answer-at-end)

    def __post_init__(self) -> None:
        check_threshold(self.threshold)


def shapes(width: int, tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor for `width` features; the number of units is that of the state.

    ValueError unless the gates are three or four times the units.
    """
    units, gates = tensors["cell.weight_hh_l0"].shape[-1], len(tensors["cell.bias_hh_l0"])
    seen = units + width if tensors["output.weight"].shape[-1] > units else units
    if gates not in (units * factor for factor in GATES.values()):
        raise ValueError(f"{gates} gates for {units} units: neither a GRU nor an LSTM")
    return {
        "cell.weight_ih_l0": (gates, width),
        "cell.weight_hh_l0": (gates, units),
        "cell.bias_ih_l0": (gates,),
        "cell.bias_hh_l0": (gates,),
        "output.weight": (1, seen),
        "output.bias": (1,),
    }


def logits(tensors: Tensors, rows: np.ndarray) -> np.ndarray:
    """(n, d) -> (n,), step after step from a state of zeros."""
    inputs = affine(rows, tensors["cell.weight_ih_l0"], tensors["cell.bias_ih_l0"])  # (n, G H)
    weight, bias = tensors["cell.weight_hh_l0"], tensors["cell.bias_hh_l0"]
    units = weight.shape[1]
    step = _gru if len(bias) == GATES["gru"] * units else _lstm
    hidden, cell = np.zeros(units, np.float32), np.zeros(units, np.float32)
    states = np.zeros((len(rows), units), np.float32)
    for place, gates in enumerate(inputs):
        hidden, cell = step(gates, weight @ hidden + bias, hidden, cell)
        states[place] = hidden
    seen = np.concatenate([states, rows], axis=1)[:, : tensors["output.weight"].shape[1]]
    return affine(seen, tensors["output.weight"], tensors["output.bias"])[:, 0]


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


NETWORK = Network("recurrent", shapes, logits)


def build(config: RecurrentConfig) -> LearntBuzzer:
    """The buzzer of a config. Raises ConfigError for an unknown model."""
    return bundled(NETWORK, config.model, config.threshold, config.end)
