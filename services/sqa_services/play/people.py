"""The contestant that a person was, as a guesser and a buzzer of a config: `sqa play export` writes such configs.

    guesser: {name: person, file: .../p-0a1b2c3d.jsonl}
    buzzer: person

`file` has one JSON object a question: `text`, the whole translation that was to be seen, `step`, the 0-based step of
the buzz or null, and `answer`.  The guesser knows a question by the last of the texts it is asked about, which is why
it answers whole questions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqa.core.errors import DataError
from sqa.core.types import Buzz, Guess
from sqa.files.atomic import file_digest
from sqa.files.records import json_lines
from sqa.files.store import digest
from sqa_services.play.rules import buzzes_of, guesses_of

VERSION = 1  # raise it when the same file would give other guesses or buzzes
NAME = "person"  # of both in configs


@dataclass(frozen=True, slots=True)
class PersonConfig:
    """Whose answers."""

    file: str  # PLAYER.jsonl of `sqa play export`


class Person:
    """Gives the answers that a person gave."""

    def __init__(self, config: PersonConfig) -> None:
        self._file = Path(config.file)

    @cached_property
    def _plays(self) -> dict[str, tuple[int | None, str]]:
        """Whole translation -> (step of the buzz, answer)."""
        plays: dict[str, tuple[int | None, str]] = {}
        for i, record in enumerate(json_lines(self._file)):
            text, step, answer = record.get("text"), record.get("step"), record.get("answer")
            good = isinstance(text, str) and isinstance(answer, str) and (step is None or type(step) is int)
            if not good or (isinstance(step, int) and step < 0):
                raise DataError(f"{self._file}: record {i}: expected text, step (0 or more, or null) and answer")
            if plays.setdefault(str(text), (step, str(answer))) != (step, answer):
                raise DataError(f"{self._file}: record {i}: a second answer to the same text; keep one of them")
        return plays

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """The person's answer at every step of one question.  A question that was not played: DataError."""
        if not texts:
            return []
        if texts[-1] not in self._plays:
            raise DataError(
                f"{self._file}: has no answer to {texts[-1][:60]!r}; this person did not play that question"
            )
        return guesses_of(len(texts), *self._plays[texts[-1]])

    def fingerprint(self) -> str:
        return digest([VERSION, file_digest(self._file)])


def build_guesser(config: PersonConfig) -> Person:
    return Person(config)


@dataclass(frozen=True, slots=True)
class PersonBuzzerConfig:
    """Nothing to choose: a person buzzes where the answer is."""


class PersonBuzzer:
    """Buzzes from the first step that has an answer."""

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        return buzzes_of(history)

    def fingerprint(self) -> str:
        return f"person {VERSION}"


def build_buzzer(config: PersonBuzzerConfig) -> PersonBuzzer:
    return PersonBuzzer()
