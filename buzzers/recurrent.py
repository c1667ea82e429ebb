"""The trained buzzer `recurrent`: a GRU or an LSTM over the features of a question's steps.

The state at step t depends on steps 1..t, so it reflects the history of the guesses.  The shapes of the tensors
determine the cell: a GRU's gates are three times its units, an LSTM's four times.  They also show whether the output
reads the step's features in addition to the state.
"""

import numpy as np

from buzzers.learnt import LearntBuzzer, LearntConfig, Network, Shapes, Tensors, affine, bundled

GATES = {"gru": 3, "lstm": 4}


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
    """Return states of shape (n, H), starting from zeros, with the features appended if the output reads them."""
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
    """Return the next state of a torch GRU from the gates of input and state (each 3 H) and the state."""
    n = len(hidden)
    reset, update = np.split(_sigmoid(x[: 2 * n] + h[: 2 * n]), 2)
    new = np.tanh(x[2 * n :] + reset * h[2 * n :])
    return (1 - update) * new + update * hidden, cell


def _lstm(x: np.ndarray, h: np.ndarray, hidden: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the next state and cell of a torch LSTM from the gates of input and state (each 4 H) and the cell."""
    enter, forget, new, leave = np.split(x + h, 4)
    cell = _sigmoid(forget) * cell + _sigmoid(enter) * np.tanh(new)
    return _sigmoid(leave) * np.tanh(cell), cell


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


RECURRENT = Network("recurrent", _state_shapes, _states)


def build(config: LearntConfig) -> LearntBuzzer:
    """Return a GRU or LSTM that reads the features step by step."""
    return bundled(RECURRENT, config)
