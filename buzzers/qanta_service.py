"""The buzzes of a QANTA system that is the guesser of the run (guessers/qanta_service.py); it has nothing to set.

    guesser: {name: qanta_service, url: "http://localhost:4861"}
    buzzer: {name: qanta_service}

Such a system says with each guess whether it buzzes; the guess's score, 1 or 0, holds that.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sqa.core.errors import ConfigError
from sqa.core.types import Buzz, Guess

VERSION = 1  # raise when the same guesses would give other buzzes


@dataclass(frozen=True, slots=True)
class QantaServiceConfig:
    """What `buzzer: {name: qanta_service}` takes: nothing."""


class QantaServiceBuzzer:
    """Buzzes where the system did."""

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """One buzz per step, its score that of the guess.  ConfigError for guesses of another guesser."""
        for guesses in history:
            if len(guesses) > 1 or any(guess.score not in (0.0, 1.0) for guess in guesses):
                raise ConfigError("buzzer: qanta_service reads the guesses of the guesser qanta_service only")
        scores = [guesses[0].score if guesses else 0.0 for guesses in history]
        return [Buzz(score, score == 1.0) for score in scores]

    def fingerprint(self) -> str:
        """Hash of the code's version."""
        return hashlib.sha256(f"qanta_service {VERSION}".encode()).hexdigest()


def build(config: QantaServiceConfig) -> QantaServiceBuzzer:
    """The buzzer."""
    return QantaServiceBuzzer()
