"""People's answers as traces, their scores, and people as guesser and buzzer of a config.

`sqa play export` writes such configs:

    guesser: {name: person, file: .../p-0a1b2c3d.jsonl}
    buzzer: person

`file` has one JSON object per question.  `text` is the whole translation, `step` the 0-based step of the buzz or null,
and `answer` the answer.  The guesser identifies a question by the last text it receives, so it answers only whole
questions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from sqa.core.errors import DataError
from sqa.core.schema import File
from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Guess
from sqa.files.atomic import file_digest
from sqa.files.records import converted, json_lines
from sqa.files.store import digest
from sqa.metrics.qa import ExpectedWins

VERSION = 1  # increase when the guesses or buzzes of a file change
NAME = "person"  # name of guesser and buzzer in configs
METRIC = ExpectedWins()
FIRST_RIGHT, FIRST_WRONG = 10, -5  # points, as in Quizbowl: a wrong first buzz loses five


def guesses_of(steps: int, step: int | None, answer: str) -> list[list[Guess]]:
    """Return a person's guesses at each step: none before the buzz, then the answer ("": no answer in time)."""
    return [[] if step is None or at < step else [Guess(answer, 1.0)] for at in range(steps)]


def buzzes_of(history: Sequence[Sequence[Guess]]) -> list[Buzz]:
    """Return a person's decisions at each step: a buzz at every step that has an answer."""
    return [Buzz(float(bool(guesses)), bool(guesses)) for guesses in history]


def played(shown: QuestionTrace, step: int | None, answer: str) -> QuestionTrace:
    """Return the trace of a person who read `shown`, buzzed after the 0-based `step` (None: never) and answered."""
    guesses = guesses_of(len(shown.emissions), step, answer)
    return QuestionTrace(shown.question, shown.emissions, tuple(map(tuple, guesses)), tuple(buzzes_of(guesses)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a contestant (person or system) on a question."""

    step: int | None  # step of the first buzz; None: never
    fraction: float | None  # share of the source's characters read at that step, 0 to 1
    words: int | None  # source words read at that step
    answer: str  # the answer given; "": none
    right: bool
    ew: float  # expected wins, 0 to about 1


def outcome(trace: QuestionTrace) -> Outcome:
    """Return the Outcome of a contestant's trace."""
    step = next((at for at, buzz in enumerate(trace.buzzes or ()) if buzz.buzz), None)
    ew = float(METRIC.stats(trace)[0])
    if step is None or trace.guesses is None:
        return Outcome(None, None, None, "", False, ew)
    answer = trace.guesses[step][0].page if trace.guesses[step] else ""
    fraction, words = float(trace.fraction[step]), int(trace.source_words[step])
    return Outcome(step, fraction, words, answer, bool(trace.correct[step]), ew)


def points(buzzes: Sequence[tuple[float, bool] | None]) -> list[int]:
    """Return the points of the contestants on one question; each buzz is (time, right), or None for no buzz.

    The first buzz gets FIRST_RIGHT or FIRST_WRONG.  After a wrong first buzz, the next right buzz gets FIRST_RIGHT, and
    further wrong buzzes lose nothing.  If times are equal, the contestant listed first wins.
    """
    won = [0] * len(buzzes)
    order = sorted((buzz[0], at, buzz[1]) for at, buzz in enumerate(buzzes) if buzz is not None)
    for rank, (_, at, right) in enumerate(order):
        if right:
            won[at] = FIRST_RIGHT
            break
        if rank == 0:
            won[at] = FIRST_WRONG
    return won


# ---------------------------------------------------------------------------------------------------- for configs


@dataclass(frozen=True, slots=True)
class PersonConfig:
    """Configuration of a person as guesser: the file of recorded answers."""

    file: Annotated[File, "PLAYER.jsonl of `sqa play export`"]


class _Record(Struct):
    """A line of the file."""

    text: str
    step: Annotated[int, Meta(ge=0)] | None
    answer: str


class Person:
    """Guesser that replays a person's recorded answers."""

    def __init__(self, config: PersonConfig) -> None:
        self._file = Path(config.file)

    @cached_property
    def _plays(self) -> dict[str, tuple[int | None, str]]:
        """Read the file into a dict that maps each whole translation to (step of the buzz, answer)."""
        plays: dict[str, tuple[int | None, str]] = {}
        for i, record in enumerate(json_lines(self._file)):
            play = converted(f"{self._file}: record {i}", record, _Record)
            if plays.setdefault(play.text, (play.step, play.answer)) != (play.step, play.answer):
                raise DataError(f"{self._file}: record {i}: a second answer to the same text; keep one of them")
        return plays

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the person's answer at every step of one question.  Raises DataError if the question is unknown."""
        if texts and texts[-1] not in self._plays:
            unknown = f"contains no answer to {texts[-1][:60]!r}; the person did not play that question"
            raise DataError(f"{self._file}: {unknown}")
        return guesses_of(len(texts), *self._plays[texts[-1]]) if texts else []

    def fingerprint(self) -> str:
        return digest([VERSION, file_digest(self._file)])


def build_guesser(config: PersonConfig) -> Person:
    return Person(config)


@dataclass(frozen=True, slots=True)
class PersonBuzzerConfig:
    """Empty configuration: a person buzzes at the recorded answer."""


class PersonBuzzer:
    """Buzzer that buzzes from the first step with an answer."""

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        return buzzes_of(history)

    def fingerprint(self) -> str:
        return f"person {VERSION}"


def build_buzzer(config: PersonBuzzerConfig) -> PersonBuzzer:
    return PersonBuzzer()
