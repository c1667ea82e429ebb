"""The oracle buzzer: gets the answer and buzzes wherever the top guess is right. An upper bound, no contestant."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqa.core.answers import is_right
from sqa.core.errors import ConfigError
from sqa.core.types import Buzz, Guess

VERSION = 1  # of the code that turns guesses into buzzes


@dataclass(frozen=True, slots=True)
class OracleConfig:
    """What `buzzer: {name: oracle}` takes: nothing."""


class OracleBuzzer:
    """Buzzes where the top guess is right."""

    oracle: ClassVar[bool] = True  # makes the pipeline call `decide_with_answer`

    def decide_with_answer(self, history: Sequence[Sequence[Guess]], page: str) -> list[Buzz]:
        """One buzz per step, score 1 and True where the top guess is `page`, 0 and False elsewhere."""
        right = [bool(guesses) and is_right(guesses[0].page, page) for guesses in history]
        return [Buzz(float(hit), hit) for hit in right]

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """Refuses: without the answer there is no oracle."""
        raise ConfigError("buzzer: the oracle needs the answer; call decide_with_answer")

    def fingerprint(self) -> str:
        """sha256 of the code version."""
        return hashlib.sha256(f"oracle {VERSION}".encode()).hexdigest()


def build(config: OracleConfig) -> OracleBuzzer:
    """The buzzer of a config."""
    return OracleBuzzer()
