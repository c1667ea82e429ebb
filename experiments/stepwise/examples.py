"""Selection rule for the questions of Figure 5 and Table 2; no question is picked by hand.

A question whose answer is unknown to the guesser cannot serve as an example, because its log MRR is always at the
floor.  A question therefore counts only if its answer is first after the whole human translation.  For each data set,
two examples are selected from the configured systems:

    (a) the hallucination at which log MRR falls most: up to SHORT words, including content words, without a
        corresponding source word; the output is at most LONG times as long as the human translation (longer ones are
        loops)
    (b) the under-translation with the longest silence while the answer is not first: source words are lost, and no
        more of their sentence is written; the silence is the share of the question's characters read meanwhile

A translator that is not available is left out, which may change the examples.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from experiments.stepwise.systems import RULES, Kind, Selection, Subject, systems
from sqa.core.errors import NotComputable
from sqa.diagnose.step_errors import TINY, Finding
from sqa.pipeline.config import load

SHORT = 5
LONG = 1.5
Panel = Literal["a", "b"]
KINDS: dict[Panel, Kind] = {"a": "hallucination", "b": "under-translation"}


@dataclass(frozen=True, slots=True)
class ExamplesConfig:
    """Keys of Figure 5 and Tables 2 and 5; configs/examples.yaml explains them."""

    name: str
    ablation: Path
    guesser: str
    translators: tuple[str, ...]
    hallucination: int | str
    under_translation: int | str
    shown: tuple[int | str, ...]
    pages: tuple[str, ...] = ()

    def k(self, panel: Panel) -> int | str:
        """Return the k of the systems whose errors a panel shows."""
        return self.hallucination if panel == "a" else self.under_translation


class Example(NamedTuple):
    """One error of one system."""

    panel: Panel
    subject: Subject
    finding: Finding
    size: float  # nats lost (a), or share of the question read in silence (b)

    def order(self) -> tuple[float, str, str, int]:
        """Return a sort key: largest error first."""
        return -self.size, self.subject.system, self.finding.question, self.finding.first

    @property
    def stem(self) -> str:
        return f"figure5{self.panel}_{self.subject.dataset}"


def load_systems(config_path: Path, runs: Path) -> Selection:
    """Return the systems of a config, from the ablation's runs; missing runs are computed."""
    config = load(config_path, ExamplesConfig)
    ks = (config.hallucination, config.under_translation, *config.shown)
    return systems(config, config_path, runs, [(translator, k) for translator in config.translators for k in ks])


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
    if len(finding.words) > SHORT or finding.loss <= RULES.drop + TINY:
        return False
    question = subject.run.questions[index]
    return len(line.read) <= LONG * len(question.reference_text.split())


def candidates(selection: Selection, dataset: str, panel: Panel) -> Iterator[Example]:
    """Yield the errors of a data set that a panel could show."""
    for subject in selection.subjects:
        if (subject.dataset, subject.k) == (dataset, selection.config.k(panel)):
            for finding in (finding for finding in subject.findings(KINDS[panel]) if tells(panel, subject, finding)):
                start, end = subject.silence(finding)
                if (size := finding.loss if panel == "a" else end - start) > 0:
                    yield Example(panel, subject, finding, size)


def chosen(selection: Selection) -> list[Example]:
    """Return the largest error of each data set and panel; raises NotComputable if no panel has an error."""
    examples = []
    for dataset, panel in product(selection.datasets, KINDS):
        examples += sorted(candidates(selection, dataset, panel), key=Example.order)[:1]
    if not examples:
        raise NotComputable("figure 5, table 2: " + "; ".join(why for _, why in missing(selection, examples)))
    return examples


def missing(selection: Selection, examples: Iterable[Example]) -> list[tuple[str, str]]:
    """Return a pair (data set, reason) for each panel without an example and each system that is left out."""
    shown = {(example.subject.dataset, example.panel) for example in examples}
    names = ", ".join(selection.config.translators)
    gone = []
    for dataset, (panel, kind) in product(selection.datasets, KINDS.items()):
        if (dataset, panel) not in shown:
            systems_of = f"5{panel}: {names} at k={selection.config.k(panel)}"
            gone.append((dataset, f"{systems_of} have no {kind} in a question whose answer is known"))
    return [*gone, *selection.left_out]
