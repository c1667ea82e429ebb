"""The threshold buzzer: answers once the top guess stands out.

It stands out when its part of the sum of the best ten scores reaches `threshold` (QANTA's TF-IDF baseline does this
with .3).  The part lies between .1 (ten equal guesses) and 1, whatever scale the guesser's scores have; a single guess,
as in the first words of a question, stands out by nature, so there have to be ten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from buzzers.features import N_GUESSES, share
from sqa.errors import ConfigError
from sqa.types import Buzz, Guess

VERSION = 1  # of the code that turns guesses into buzzes


@dataclass(frozen=True, slots=True)
class ThresholdConfig:
    """What `buzzer: {name: threshold, ...}` takes."""

    threshold: float = 0.17  # part of the sum of the best ten scores at which to answer, above 0, at most 1

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigError(f"threshold: must be above 0 and at most 1, got {self.threshold}")


class ThresholdBuzzer:
    """Buzzes where the top guess's share reaches the threshold."""

    def __init__(self, config: ThresholdConfig) -> None:
        self._threshold = config.threshold

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """One buzz per step; the score is the share, 0 with fewer than ten guesses."""
        shares = [share(guesses) if len(guesses) >= N_GUESSES else 0.0 for guesses in history]
        return [Buzz(value, value >= self._threshold) for value in shares]

    def fingerprint(self) -> str:
        """sha256 of the code version and the threshold."""
        return hashlib.sha256(f"threshold {VERSION} {self._threshold!r}".encode()).hexdigest()


def build(config: ThresholdConfig) -> ThresholdBuzzer:
    """The buzzer of a config."""
    return ThresholdBuzzer(config)
