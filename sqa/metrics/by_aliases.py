"""The metrics of answers with right answers as Quizbowl matches them: `ew@aliases`, `accuracy@aliases`, ...

All else is as in the strict metric, the positions of buzzes included.  The rule is `sqa.core.quizbowl.Accepted` with
the bundled tables (data/answers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqa.core.trace import QuestionTrace
from sqa.core.types import Floats
from sqa.data import answer_aliases
from sqa.metrics.measure import Family, MeanMetric, Measure


@dataclass(frozen=True, slots=True)
class ByAliases(MeanMetric):
    """A metric of answers on the same traces, their guesses judged by `Accepted`."""

    strict: MeanMetric

    @property
    def family(self) -> Family:
        return self.strict.family

    @property
    def described(self) -> Measure:
        return replace(self.strict.described, aliases=True)

    def signature(self) -> str:
        settings, _, version = self.strict.signature().rpartition("|")
        return f"{settings}|match:{answer_aliases.bundled().name}|{version}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(d,): those of the strict metric.  No guesser ran: NotComputable."""
        if trace.guesses is None:
            return self.strict.stats(trace)  # raises
        rule = answer_aliases.bundled()
        return self.strict.stats(trace.judged(rule.name, rule.is_right))
