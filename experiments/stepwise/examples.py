"""Questions of Figure 5 and Tables 2 and 5, which the config names; by default they are the paper's own.

A question is shown as each configured system translates it, with its worst error of the panel's kind:

    (a) the hallucination at which log MRR falls most
    (b) the under-translation with the longest silence: source words are lost, and no more of their sentence is written;
        the silence is the share of the question's characters read meanwhile

A translator that is not available is left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

from experiments.grid import part_of_name
from experiments.stepwise.systems import Kind, Selection, Subject, systems
from sqa.core import Count, K, NotComputable
from sqa.diagnose.step_errors import Finding
from sqa.pipeline import load

Panel = Literal["a", "b"]
KINDS: dict[Panel, Kind] = {"a": "hallucination", "b": "under-translation"}


@dataclass(frozen=True, slots=True)
class NamedQuestion:
    """The question of a panel."""

    id: str
    k: K  # of the systems shown


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
    finding: Finding | None  # worst error of the panel's kind; None if the question has none

    @property
    def size(self) -> float:
        """Nats lost (a), or share of the question read in silence (b)."""
        if self.finding is None:
            return 0.0
        start, end = self.subject.silence(self.finding)
        return self.finding.loss if self.panel == "a" else end - start


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


def of_question(panel: Panel, subject: Subject, index: int) -> Example:
    """Return a question as an example, with its largest error of the panel's kind."""
    id = subject.run.questions[index].id
    findings = [finding for finding in subject.findings(KINDS[panel]) if finding.question == id]
    examples = [Example(panel, subject, index, finding) for finding in [*findings, None]]
    return min(examples, key=lambda example: (-example.size, example.finding.first if example.finding else 0))


def chosen(selection: Selection) -> list[Example]:
    """Return the question of each panel as every system translates it; raises NotComputable if there is none."""
    examples = [
        of_question(panel, subject, subject.indices[named.id])
        for panel, named in selection.config.questions.items()
        for subject in selection.subjects
        if subject.k == named.k and named.id in subject.indices
    ]
    if not examples:
        raise NotComputable("figure 5, tables 2 and 5: " + "; ".join(why for _, why in missing(selection, examples)))
    return examples


def missing(selection: Selection, examples: Iterable[Example]) -> list[tuple[str, str]]:
    """Return a pair (question or system, reason) for each question that no run has and each system that is left out."""
    shown = {example.panel for example in examples}
    names = f"{', '.join(selection.config.translators)} on {', '.join(selection.datasets)}"
    gone = [
        (named.id, f"5{panel}: no run of {names} has {named.id} at k={named.k}")
        for panel, named in selection.config.questions.items()
        if panel not in shown
    ]
    return [*gone, *selection.left_out]
