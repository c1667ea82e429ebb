"""The trained buzzer `recurrent`: a GRU over the features of a question's steps.

The state at step t depends on steps 1..t, so it reflects the history of the guesses.  The shapes of the tensors show
whether the output reads the step's features in addition to the state.
"""

import numpy as np

from buzzers.learnt import LearntBuzzer, LearntConfig, Network, Shapes, Tensors, affine, bundled


def _state_shapes(width: int, tensors: Tensors) -> tuple[Shapes, int]:
    units = tensors["cell.weight_hh_l0"].shape[-1]
    shapes: Shapes = {
        "cell.weight_ih_l0": (3 * units, width),
        "cell.weight_hh_l0": (3 * units, units),
        "cell.bias_ih_l0": (3 * units,),
        "cell.bias_hh_l0": (3 * units,),
    }
    return shapes, units + width if tensors["output.weight"].shape[-1] > units else units


def _states(tensors: Tensors, rows: np.ndarray) -> np.ndarray:
    """Return states of shape (n, H), starting from zeros, with the features appended if the output reads them."""
    inputs = affine(rows, tensors["cell.weight_ih_l0"], tensors["cell.bias_ih_l0"])  # (n, 3 H)
    weight, bias = tensors["cell.weight_hh_l0"], tensors["cell.bias_hh_l0"]
    units = weight.shape[1]
    hidden = np.zeros(units, np.float32)
    states = np.zeros((len(rows), units), np.float32)
    for index, gates in enumerate(inputs):
        states[index] = hidden = _gru(gates, weight @ hidden + bias, hidden)
    return np.concatenate([states, rows], axis=1)[:, : tensors["output.weight"].shape[1]]


def _gru(x: np.ndarray, h: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return the next state of a torch GRU from the gates of input and state (each 3 H) and the state."""
    n = len(hidden)
    reset, update = np.split(_sigmoid(x[: 2 * n] + h[: 2 * n]), 2)
    new = np.tanh(x[2 * n :] + reset * h[2 * n :])
    return np.asarray((1 - update) * new + update * hidden)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


RECURRENT = Network("recurrent", _state_shapes, _states)


def build(config: LearntConfig) -> LearntBuzzer:
    """Return a GRU that reads the features step by step."""
    return bundled(RECURRENT, config)
