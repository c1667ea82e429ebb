"""The oracle buzzer, an upper bound, which knows the answer and buzzes at every step with a right top guess."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqa.core import Buzz, ConfigError, Guess, is_right

VERSION = 1  # version of the code that turns guesses into buzzes


@dataclass(frozen=True, slots=True)
class OracleConfig:
    """Options of `buzzer: {name: oracle}`; there are none."""


class OracleBuzzer:
    """Buzzer that buzzes at every step with a right top guess."""

    oracle: ClassVar[bool] = True  # makes the pipeline call `decide_with_answer`

    def decide_with_answer(self, history: Sequence[Sequence[Guess]], page: str) -> list[Buzz]:
        """Return one buzz per step: score 1 and True if the top guess is `page`, else 0 and False."""
        right = [bool(guesses) and is_right(guesses[0].page, page) for guesses in history]
        return [Buzz(float(hit), hit) for hit in right]

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """Raise ConfigError, since an oracle needs the answer."""
        raise ConfigError("buzzer: the oracle needs the answer; call decide_with_answer")

    def fingerprint(self) -> str:
        """Return the sha256 of the code version."""
        return hashlib.sha256(f"oracle {VERSION}".encode()).hexdigest()


def build(config: OracleConfig) -> OracleBuzzer:
    """Return the buzzer of a config."""
    return OracleBuzzer()
