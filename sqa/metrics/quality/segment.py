"""The texts of one question, one line each: what every metric of quality looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqa.core.errors import NotComputable

if TYPE_CHECKING:
    from sqa.core.trace import QuestionTrace


def lines(trace: QuestionTrace) -> tuple[str, str]:
    """(hypothesis, reference) of one question, one line each.  No human translation: NotComputable."""
    reference = trace.question.reference_text
    if not reference.strip():
        raise NotComputable(f"bleu, chrf, ter: {trace.question.id} has no human translation")
    return " ".join(sentence for sentence in trace.hypotheses if sentence), reference


@dataclass(frozen=True, slots=True)
class Segment:
    """The texts of one question, one line each."""

    id: str  # of the question
    source: str
    hypothesis: str  # "" where nothing was written
    reference: str


def segment_of(trace: QuestionTrace) -> Segment:
    """The texts of a trace.  No human translation: NotComputable."""
    hypothesis, reference = lines(trace)
    return Segment(trace.question.id, trace.question.text, hypothesis, reference)
