"""How late a listener can answer: words between what is needed for an answer and the answer that stays.

    answer-lag = mean of (source words read at the first step from which the top guess stays right
                          - the question's earliest_answerable)

Over the questions that end with a right answer; how many these are is `accuracy`.  Below 0 the answer came before it
was said (a guess, or knowledge).  A question that does not say when it can be answered: not computable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sqa import __version__
from sqa.core.errors import NotComputable
from sqa.core.significance import ratio, ratio_many
from sqa.core.types import Floats

if TYPE_CHECKING:
    from sqa.core.trace import QuestionTrace


@dataclass(frozen=True, slots=True)
class AnswerLag:
    """stats = [sum of lags in source words, questions that end with a right answer]."""

    name: ClassVar[str] = "answer-lag"
    label: ClassVar[str] = "answer lag"
    unit: ClassVar[str] = "words"
    digits: ClassVar[int] = 2
    kind: ClassVar[str] = "lag"
    higher_is_better: ClassVar[bool] = False

    def signature(self) -> str:
        return f"answer-lag|unit:source-word|at:stable|of:right|v:{__version__}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2,): [lag, 1], or [0, 0] where the last guess is wrong."""
        asked = trace.question.asked
        if trace.guesses is None:
            raise NotComputable(f"{self.name}: no guesser ran on {trace.question.id}")
        if asked is None or asked.answerable is None:
            raise NotComputable(f"{self.name}: question {trace.question.id} has no earliest_answerable")
        correct = trace.correct
        if not len(correct) or not correct[-1]:
            return np.zeros(2)
        wrong = np.flatnonzero(~correct)
        step = int(wrong[-1]) + 1 if len(wrong) else 0
        return np.array([float(trace.source_words[step] - asked.answerable), 1.0])

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)
