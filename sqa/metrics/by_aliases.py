"""The metrics of answers with right answers as Quizbowl matches them: `ew@aliases`, `accuracy@aliases`, ...

Everything else about them is the metric's that they are made of: the buzzer still buzzes where it did.  The rule is
`sqa.core.answers.Accepted`, its tables are the bundled ones (data/answers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqa.core.interfaces import Metric, ScoresMany
from sqa.core.types import Floats
from sqa.data import answer_aliases
from sqa.metrics import ALIASES

if TYPE_CHECKING:
    from sqa.core.trace import QuestionTrace


class OfAnswers(Metric, ScoresMany, Protocol):
    """What every metric of answers is (sqa/metrics/qa.py)."""


@dataclass(frozen=True, slots=True)
class ByAliases:
    """A metric of answers on the same traces, their guesses judged by `Accepted`."""

    strict: OfAnswers

    @property
    def name(self) -> str:
        return f"{self.strict.name}{ALIASES}"

    @property
    def label(self) -> str:
        return f"{self.strict.label}{ALIASES}"

    @property
    def unit(self) -> str:
        return self.strict.unit

    @property
    def digits(self) -> int:
        return self.strict.digits

    @property
    def kind(self) -> str:
        return self.strict.kind

    @property
    def higher_is_better(self) -> bool:
        return self.strict.higher_is_better

    def signature(self) -> str:
        rest, _, version = self.strict.signature().rpartition("|")
        return f"{rest}|match:{answer_aliases.bundled().name}|{version}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(d,): those of the strict metric.  No guesser ran: NotComputable."""
        if trace.guesses is None:
            return self.strict.stats(trace)  # which says so
        rule = answer_aliases.bundled()
        return self.strict.stats(trace.judged(rule.name, rule.is_right))

    def score(self, stats: Floats) -> float:
        return self.strict.score(stats)

    def score_many(self, stats: Floats) -> Floats:
        return self.strict.score_many(stats)
