"""The MLP buzzer: 22 features -> 50 rectified units -> the chance that the top guess is right; numpy only.

A model is trained on the guesses of one guesser, whose scores have their own scale; features are standardised with the
mean and deviation of the training steps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from buzzers.features import N_FEATURES, features
from sqa.errors import ConfigError, DataError
from sqa.models import folder_digest, read_tensors, resolve_model, write_tensors
from sqa.types import Buzz, Guess

VERSION = 1  # of the code that turns guesses into buzzes
TENSORS = ("mean", "deviation", "hidden.weight", "hidden.bias", "output.weight", "output.bias")


@dataclass(frozen=True, slots=True)
class MlpConfig:
    """What `buzzer: {name: mlp, ...}` takes."""

    model: str = "bm25"  # the guesser it was trained for (bundled: bm25, gru), or a model folder
    threshold: float | None = None  # chance of being right at which to answer, 0..1; null = the model's own

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ConfigError(f"threshold: must be in 0..1 or null, got {self.threshold}")


class MlpBuzzer:
    """A trained network and the chance at which it answers."""

    def __init__(self, tensors: dict[str, np.ndarray], threshold: float, digest: str = "") -> None:
        """`tensors`: float32, mean (22,), deviation (22,), hidden.weight (H, 22), hidden.bias (H,), output.weight (H,),
        output.bias (1,).  `digest` names them in the fingerprint."""
        self._tensors, self.threshold, self._digest = tensors, threshold, digest

    def chances(self, rows: np.ndarray) -> np.ndarray:
        """(n, 22) features -> (n,) float64, the chance that the top guess is right."""
        t = self._tensors
        standard = (rows - t["mean"]) / t["deviation"]
        hidden = np.maximum(standard @ t["hidden.weight"].T + t["hidden.bias"], 0)  # (n, H)
        logit = (hidden @ t["output.weight"] + t["output.bias"]).astype(np.float64)
        return np.exp(-np.logaddexp(0, -logit))

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """One buzz per step. Without a guess there is nothing to answer: chance 0."""
        if not history:
            return []
        rows = features(history)
        chances = [
            float(self.chances(rows[step : step + 1])[0]) if guesses else 0.0 for step, guesses in enumerate(history)
        ]
        return [
            Buzz(chance, bool(guesses) and chance >= self.threshold)
            for chance, guesses in zip(chances, history, strict=True)
        ]

    def fingerprint(self) -> str:
        """sha256 of the model's files, the code version and the threshold."""
        return hashlib.sha256(f"mlp {VERSION} {self._digest} {self.threshold!r}".encode()).hexdigest()

    def save(self, folder: Path, guesser: str) -> None:
        """Write model.safetensors and config.json; `guesser` says whose guesses it was trained on."""
        config = {"kind": "buzzer-mlp", "version": VERSION, "threshold": self.threshold, "guesser": guesser}
        write_tensors(folder, self._tensors, config)

    @classmethod
    def load(cls, folder: Path, threshold: float | None = None) -> MlpBuzzer:
        """Read what `save` wrote; DataError if it is damaged."""
        tensors, config = read_tensors(folder, "buzzer-mlp", VERSION)
        missing = sorted(set(TENSORS) - set(tensors))
        own = config.get("threshold")
        if missing or tensors["mean"].shape != (N_FEATURES,) or not isinstance(own, float):
            raise DataError(f"{folder}: not an MLP buzzer of {N_FEATURES} features; restore or train it again")
        return cls(tensors, own if threshold is None else threshold, folder_digest(folder))


def build(config: MlpConfig) -> MlpBuzzer:
    """The buzzer of a config. Raises ConfigError for an unknown model."""
    return MlpBuzzer.load(resolve_model(config.model, prefix="buzzer-mlp-"), config.threshold)
