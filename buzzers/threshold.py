"""The threshold buzzer, which answers once one of three signals of the top guess reaches a threshold.

share    the share of its score in the sum of the best ten scores, between .1 (ten equal guesses) and 1, independent of
         the scale of the scores (QANTA's TF-IDF baseline answers at .3).  Ten guesses are required, because the few
         guesses after the first words of a question always have large shares
score    its score
margin   the difference between its score and that of the second guess; two guesses are required
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np

from buzzers.learnt import N_GUESSES
from sqa.core import Buzz, ConfigError, DataError, File, Guess
from sqa.files import read_tensors, resolve_model, write_tensors

VERSION = 2  # version of the files and of the code that turns guesses into buzzes
KIND = "buzzer-threshold"
Signal = Literal["share", "score", "margin"]  # signals for a fixed threshold
SIGNALS: tuple[Signal, ...] = get_args(Signal)


@dataclass(frozen=True, slots=True)
class ThresholdConfig:
    """Options of `buzzer: {name: threshold, ...}`."""

    threshold: Annotated[float | None, "value at which to answer, above 0; null = the model's, else .17"] = None
    signal: Annotated[Signal | None, "value compared with the threshold; null = the model's, else share"] = None
    model: Annotated[File | None, "guesser for which the threshold was tuned (bundled: bm25, gru), or a folder"] = None

    def __post_init__(self) -> None:
        if self.threshold is not None and not self.threshold > 0:
            raise ConfigError(f"threshold: must be above 0, got {self.threshold}")
        if self.threshold is not None and self.signal in (None, "share") and self.model is None and self.threshold > 1:
            raise ConfigError(f"threshold: must be at most 1, the largest share, got {self.threshold}")
        if self.model is not None and self.signal is not None:
            raise ConfigError("signal: the model defines it already; omit `signal` or `model`")


def share(guesses: Sequence[Guess]) -> float:
    """Return the top guess's share of the sum of the best ten scores, 0..1; 0 without guesses or if the sum is 0."""
    total = sum(guess.score for guess in guesses[:N_GUESSES])
    return guesses[0].score / total if total > 0 else 0.0


def signals(guesses: Sequence[Guess]) -> tuple[float, float, float]:
    """Return the values of SIGNALS at one step: share of the best ten, top score, lead over the second guess.

    The share of fewer than ten guesses and the lead of a single guess are -inf.  Otherwise both would be largest at the
    start of a question.
    """
    if not guesses:
        return (-np.inf, -np.inf, -np.inf)
    lead = guesses[0].score - guesses[1].score if len(guesses) > 1 else -np.inf
    return (share(guesses) if len(guesses) >= N_GUESSES else -np.inf, guesses[0].score, lead)


class ThresholdBuzzer:
    """Buzzer that buzzes when the signal reaches the threshold."""

    def __init__(self, threshold: float = 0.17, signal: Signal = "share", trained_for: str | None = None) -> None:
        """Store a threshold; `trained_for` names the guesser whose guesses were used for tuning."""
        self.threshold, self.signal, self.trained_for = threshold, signal, trained_for

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """Return one buzz per step; the score is the signal, or 0 if there is none."""
        column = SIGNALS.index(self.signal)
        values = [signals(guesses)[column] for guesses in history]
        return [Buzz(value if math.isfinite(value) else 0.0, value >= self.threshold) for value in values]

    def fingerprint(self) -> str:
        """Return the sha256 of code version, signal and threshold."""
        return hashlib.sha256(f"threshold {VERSION} {self.signal} {self.threshold!r}".encode()).hexdigest()

    def save(self, folder: Path, guesser: str) -> None:
        """Write a model folder; `guesser` is the guesser used for tuning."""
        config = {"kind": KIND, "version": VERSION, "guesser": guesser, "signal": self.signal}
        write_tensors(folder, {"threshold": np.array([self.threshold])}, config)

    @classmethod
    def load(cls, folder: Path, threshold: float | None = None) -> ThresholdBuzzer:
        """Read a model folder written by `save`.  Raises DataError if it is damaged."""
        tensors, config = read_tensors(folder, KIND, VERSION)
        stored = tensors.get("threshold", np.zeros(0))
        if stored.shape != (1,) or config.get("signal") not in SIGNALS:
            raise DataError(f"{folder}: not a tuned threshold; restore or train it again")
        return cls(float(stored[0]) if threshold is None else threshold, config["signal"], config.get("guesser"))


def build(config: ThresholdConfig) -> ThresholdBuzzer:
    """Return the buzzer of a config.  Raises ConfigError for an unknown model."""
    if config.model is not None:
        return ThresholdBuzzer.load(resolve_model(config.model, prefix=f"{KIND}-"), config.threshold)
    return ThresholdBuzzer(0.17 if config.threshold is None else config.threshold, config.signal or "share")
