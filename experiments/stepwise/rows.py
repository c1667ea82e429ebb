"""What is known of one system on one data set, step by step: findings, ranks, the human translation's ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from sqa.core.trace import QuestionTrace
from sqa.diagnose.step_errors import DiagnoseConfig, Finding, StepErrors, ranked
from sqa.run.folder import FinishedRun

RULES = DiagnoseConfig()


class Line(NamedTuple):
    """What was known at each step of one question, each array (n,)."""

    read: np.ndarray  # source words of the question read
    fraction: np.ndarray  # of the question's source characters read, 0 to 1
    sentence: np.ndarray  # 0-based
    log_mrr: np.ndarray  # natural logarithm of 1 / rank, RULES.floor where the answer is not listed

    def at(self, position: int) -> float:
        """Log MRR once `position` source words were read and what they bring was written; the floor before any word."""
        step = int(np.searchsorted(self.read, position, side="right")) - 1
        return RULES.floor if step < 0 else float(self.log_mrr[step])


@dataclass(frozen=True, slots=True)
class Subject:
    """One system on one data set."""

    dataset: str
    k: int | str
    guesser: str
    run: FinishedRun
    errors: tuple[StepErrors, ...]  # one per question
    lines: tuple[Line, ...]
    human: tuple[Line, ...]  # of the human translation
    indices: Mapping[str, int]  # id of a question -> its index in the four above
    family: str = "wait-k"  # the translator's name in the ablation

    @property
    def system(self) -> str:
        """Its name in figures and tables."""
        name = "full input" if self.k == "full" else f"wait-{self.k}"
        return name if self.family == "wait-k" else f"{self.family}, {name}"

    def index_of(self, finding: Finding) -> int:
        """Which question a finding is of, 0-based."""
        return self.indices[finding.question]

    def trace(self, finding: Finding) -> QuestionTrace:
        return self.run.traces[self.index_of(finding)]

    def findings(self) -> list[Finding]:
        """All, worst first."""
        return ranked(finding for errors in self.errors for finding in errors.findings)

    def kind(self, finding: Finding) -> Kind:
        """Its kind; omissions and under-translations are different kinds."""
        if finding.kind != "omission" or finding.span is None:
            return finding.kind
        line = self.lines[self.index_of(finding)]
        goes_on = (line.sentence == finding.sentence) & (line.read >= finding.span.stop)
        return "omission" if goes_on.any() else "under-translation"

    def marks(self, finding: Finding) -> list[Finding]:
        """The hallucinations of a finding's question as they were written: (1), (2), ... in pictures and texts."""
        findings = self.errors[self.index_of(finding)].findings
        return sorted((f for f in findings if f.kind == "hallucination"), key=lambda f: f.first)

    def silence(self, finding: Finding) -> tuple[float, float]:
        """The shares of the question's characters read when the last word before an under-translation was written, and
        when the next one was, after its sentence; 1 where none follows."""
        line = self.lines[self.index_of(finding)]
        before = np.flatnonzero(line.sentence <= finding.sentence)
        after = np.flatnonzero(line.sentence > finding.sentence)
        start = float(line.fraction[before[-1]]) if len(before) else 0.0
        return start, float(line.fraction[after[0]]) if len(after) else 1.0

    def cost(self, finding: Finding) -> float:
        """Nats of log MRR lost by it, see experiments/stepwise/errors.py."""
        if finding.kind != "omission":
            return finding.loss
        return self.deficits(self.index_of(finding))[finding.sentence]

    def deficits(self, index: int) -> list[float]:
        """For each sentence of a question, how much more log MRR the human translation gained over it, nats."""
        sentences = self.run.questions[index].sentences
        ends = np.cumsum([0, *map(len, sentences)]).tolist()
        human, line = self.human[index], self.lines[index]
        return [(human.at(b) - human.at(a)) - (line.at(b) - line.at(a)) for a, b in pairwise(ends)]


Kind = Literal["hallucination", "omission", "under-translation", "drop"]
