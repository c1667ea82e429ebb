"""The logistic buzzer: a weighted sum of the features."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from buzzers.learnt import End, LearntBuzzer, Network, Tensors, affine, bundled, check_threshold


@dataclass(frozen=True, slots=True)
class LogisticConfig:
    """What `buzzer: {name: logistic, ...}` takes."""

    model: str = "bm25"  # the guesser it was trained for (bundled: bm25, gru), or a model folder
    threshold: float | None = None  # chance of being right at which to answer, 0..1; null = the model's own
    end: End | None = field(
        default=None, metadata={"written": "if any"}
    )  # the rule whose best threshold it takes: silent (the paper's; null) or answer (ew@answer-at-end)

    def __post_init__(self) -> None:
        check_threshold(self.threshold)


def shapes(width: int, tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor for `width` features."""
    return {"output.weight": (1, width), "output.bias": (1,)}


def logits(tensors: Tensors, rows: np.ndarray) -> np.ndarray:
    """(n, d) -> (n,)."""
    return affine(rows, tensors["output.weight"], tensors["output.bias"])[:, 0]


NETWORK = Network("logistic", shapes, logits)


def build(config: LogisticConfig) -> LearntBuzzer:
    """The buzzer of a config. Raises ConfigError for an unknown model."""
    return bundled(NETWORK, config.model, config.threshold, config.end)
