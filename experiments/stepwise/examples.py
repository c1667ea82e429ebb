"""Questions of Figure 5 and Tables 2 and 5: those that the config names, else a question chosen by rule.

A question whose answer is unknown to the guesser cannot serve as an example, because its log MRR is always at the
floor.  By the rule, a question therefore counts only if its answer is first after the whole human translation.  For
each data set without a named question, the example is chosen from the configured systems:

    (a) the hallucination at which log MRR falls most: up to SHORT words, including content words, without a
        corresponding source word; the output is at most LONG times as long as the human translation (longer ones are
        loops), and at least 1 - EARLY of the source is still unread
    (b) the under-translation with the longest silence while the answer is not first: source words are lost, and no
        more of their sentence is written; the silence is the share of the question's characters read meanwhile

A translator that is not available is left out, which may change the chosen examples.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from experiments.grid import part_of_name
from experiments.stepwise.systems import RULES, Kind, Selection, Subject, systems
from sqa.core.errors import NotComputable
from sqa.core.schema import Count, K
from sqa.diagnose.step_errors import TINY, Finding
from sqa.pipeline.config import load

SHORT = 5
LONG = 1.5
EARLY = 0.9  # largest share of the source's characters read at the end of a chosen hallucination
Panel = Literal["a", "b"]
KINDS: dict[Panel, Kind] = {"a": "hallucination", "b": "under-translation"}


@dataclass(frozen=True, slots=True)
class NamedQuestion:
    """The question of a panel."""

    k: K  # of the systems shown
    id: str | None = None  # null = chosen by rule in every data set


@dataclass(frozen=True, slots=True)
class ExamplesConfig:
    """Keys of Figure 5 and Tables 2 and 5; configs/examples.yaml explains them."""

    name: str
    ablation: Path
    guesser: str
    translators: tuple[str, ...]
    questions: dict[Panel, NamedQuestion]
    limit: Count | None = None


class Example(NamedTuple):
    """One question as translated by one system."""

    panel: Panel
    subject: Subject
    at: int  # index of the question
    finding: Finding | None  # worst error of the panel's kind; None if a named question has none

    @property
    def size(self) -> float:
        """Nats lost (a), or share of the question read in silence (b)."""
        if self.finding is None:
            return 0.0
        start, end = self.subject.silence(self.finding)
        return self.finding.loss if self.panel == "a" else end - start

    def order(self) -> tuple[float, str, str, int]:
        """Return a sort key: largest error first."""
        finding = self.finding
        return (
            -self.size,
            self.subject.system,
            self.subject.run.questions[self.at].id,
            finding.first if finding else 0,
        )


def stem(example: Example, translators: Iterable[str]) -> str:
    """Return the name of an example's files."""
    family = example.subject.family
    other = "" if family == next(iter(translators)) else f"_{part_of_name(family)}"
    return f"figure5{example.panel}_{example.subject.dataset}{other}"


def load_systems(config_path: Path, runs: Path) -> Selection:
    """Return the systems of a config, from the ablation's runs; missing runs are computed."""
    config = load(config_path, ExamplesConfig)
    ks = dict.fromkeys(question.k for question in config.questions.values())
    return systems(config, config_path, runs, [*product(config.translators, ks)])


def is_answerable(subject: Subject, index: int) -> bool:
    """Return whether the answer of a question is first after the whole human translation."""
    log = subject.human[index].log_mrr
    return bool(len(log)) and log[-1] == 0


def tells(panel: Panel, subject: Subject, finding: Finding) -> bool:
    """Return whether an error is a valid example by the rule in the module's docstring."""
    index = subject.index_of(finding)
    line = subject.lines[index]
    if not is_answerable(subject, index):
        return False
    if panel == "b":
        before = np.flatnonzero(line.sentence <= finding.sentence)
        return not (len(before) and line.log_mrr[before[-1]] == 0)
    if len(finding.words) > SHORT or finding.loss <= RULES.drop + TINY or line.fraction[finding.last] > EARLY:
        return False
    question = subject.run.questions[index]
    return len(line.read) <= LONG * len(question.reference_text.split())


def candidates(selection: Selection, dataset: str, panel: Panel) -> Iterator[Example]:
    """Yield the errors of a data set that a panel could show."""
    for subject in selection.subjects:
        if (subject.dataset, subject.k) == (dataset, selection.config.questions[panel].k):
            for finding in (finding for finding in subject.findings(KINDS[panel]) if tells(panel, subject, finding)):
                example = Example(panel, subject, subject.index_of(finding), finding)
                if example.size > 0:
                    yield example


def of_question(panel: Panel, subject: Subject, index: int) -> Example:
    """Return a question as an example, with its largest error of the panel's kind."""
    id = subject.run.questions[index].id
    findings = [finding for finding in subject.findings(KINDS[panel]) if finding.question == id]
    return min((Example(panel, subject, index, finding) for finding in [*findings, None]), key=Example.order)


def chosen(selection: Selection) -> list[Example]:
    """Return the examples of each data set and panel; raises NotComputable if there are none.

    A named question is shown for every system; otherwise the example is the largest error of all systems.
    """
    examples = []
    for dataset, (panel, named) in product(selection.datasets, selection.config.questions.items()):
        of_dataset = [s for s in selection.subjects if (s.dataset, s.k) == (dataset, named.k)]
        having = [of_question(panel, s, s.indices[named.id]) for s in of_dataset if named.id in s.indices]
        examples += having or sorted(candidates(selection, dataset, panel), key=Example.order)[:1]
    if not examples:
        raise NotComputable("figure 5, tables 2 and 5: " + "; ".join(why for _, why in missing(selection, examples)))
    return examples


def missing(selection: Selection, examples: Iterable[Example]) -> list[tuple[str, str]]:
    """Return a pair (data set, reason) for each panel without an example and each system that is left out."""
    shown = {(example.subject.dataset, example.panel) for example in examples}
    names = ", ".join(selection.config.translators)
    gone = []
    for dataset, (panel, named) in product(selection.datasets, selection.config.questions.items()):
        if (dataset, panel) not in shown:
            systems_of = f"5{panel}: {names} at k={named.k}"
            gone.append((dataset, f"{systems_of} have no {KINDS[panel]} in a question whose answer is known"))
    return [*gone, *selection.left_out]
