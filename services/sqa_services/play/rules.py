"""What a person did on a question, as a trace; what that is worth, by the metrics of every contestant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqa.core.trace import Buzzes, QuestionTrace
from sqa.core.types import Buzz, Guess
from sqa.metrics.qa import ExpectedWins

METRIC = ExpectedWins()
FIRST_RIGHT, FIRST_WRONG = 10, -5  # points, as in Quizbowl: who buzzes first and errs loses five


def guesses_of(steps: int, step: int | None, answer: str) -> list[list[Guess]]:
    """A person's guesses: none before the buzz, from then on the one answer ("" = none was given in time)."""
    if step is None:
        return [[] for _ in range(steps)]
    return [[] if at < step else [Guess(answer, 1.0)] for at in range(steps)]


def buzzes_of(history: Sequence[Sequence[Guess]]) -> list[Buzz]:
    """A person's buzzes: from the first step that has an answer."""
    return [Buzz(float(bool(guesses)), bool(guesses)) for guesses in history]


def played(shown: QuestionTrace, step: int | None, answer: str) -> QuestionTrace:
    """The trace of a person who read `shown`, buzzed when step `step` (0-based) was the last to be seen, and answered.

    `step` None: never buzzed.
    """
    guesses = guesses_of(len(shown.emissions), step, answer)
    buzzes: Buzzes = tuple(buzzes_of(guesses))
    return QuestionTrace(shown.question, shown.emissions, tuple(map(tuple, guesses)), buzzes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a contestant, person or system, did on a question."""

    step: int | None  # of the first buzz; None = never
    fraction: float | None  # of the source's characters that had been read there, 0..1
    words: int | None  # source words that had been read there
    answer: str  # the answer given, "" = none
    right: bool
    ew: float  # expected wins, 0 to about 1


def outcome(trace: QuestionTrace) -> Outcome:
    """What the trace of a contestant amounts to."""
    step = next((at for at, buzz in enumerate(trace.buzzes or ()) if buzz.buzz), None)
    ew = float(METRIC.stats(trace)[0])
    if step is None or trace.guesses is None:
        return Outcome(None, None, None, "", False, ew)
    answer = trace.guesses[step][0].page if trace.guesses[step] else ""
    fraction, words = float(trace.fraction[step]), int(trace.source_words[step])
    return Outcome(step, fraction, words, answer, bool(trace.correct[step]), ew)


def points(buzzes: Sequence[tuple[float, bool] | None]) -> list[int]:
    """Points of the contestants on one question, each given as (when it buzzed, right) or None = never.

    The first to buzz has FIRST_RIGHT or FIRST_WRONG; after a wrong one the next right one has FIRST_RIGHT, further
    wrong ones lose nothing.  Of equal times the contestant that is named first was first.
    """
    won = [0] * len(buzzes)
    order = sorted((buzz[0], at) for at, buzz in enumerate(buzzes) if buzz is not None)
    for rank, (_, at) in enumerate(order):
        buzz = buzzes[at]
        if buzz is not None and buzz[1]:
            won[at] = FIRST_RIGHT
            break
        if rank == 0:
            won[at] = FIRST_WRONG
    return won
