"""Figure 5, Tables 2 and 5: single questions, word by word and as text.

    sqa reproduce fig5      # (a) a hallucination and (b) an under-translation, drawn by experiments/stepwise/figure.py
    sqa reproduce table2    # the same: their texts, the errors marked
    sqa reproduce table5    # the paper's questions, and what wait-3 and wait-6 write

Which questions are shown, by rule: nothing is picked by hand.  A question whose answer is not known shows nothing, for
log MRR lies at its floor: those count whose answer comes first when the whole human translation has been read.  Of the
systems asked for,

    (a) the hallucination at which log MRR falls most: up to SHORT words, content words among them, that no source word
        stands behind, in an output at most LONG times as long as the human translation (longer ones are loops)
    (b) the under-translation with the longest silence while the answer is not first: words of the source are lost, and
        nothing more is written of their sentence; the silence is the share of the question's characters read meanwhile

is shown of each data set.  A translator that is not available is left out; the examples may then be others.

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): words that the translation invents mislead whoever
answers; `sqa reproduce errors` measures it over all questions of a run: a question alone proves nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from experiments.outputs import Outputs
from experiments.stepwise.figure import draw, numbers, ranks
from experiments.stepwise.systems import RULES, Kind, Selection, Subject, systems
from sqa.core.answers import key
from sqa.core.errors import NotComputable
from sqa.diagnose.step_errors import TINY, Finding
from sqa.pipeline.config import load

SHORT = 5
LONG = 1.5
QUESTIONS = 2  # of Table 5, of a data set that has none of the paper's
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


# --------------------------------------------------------------------------------------------------------- the rule


def load_systems(config_path: Path, runs: Path) -> Selection:
    """Return the systems of a config, from the ablation's runs; missing runs are made."""
    config = load(config_path, ExamplesConfig)
    ks = (config.hallucination, config.under_translation, *config.shown)
    return systems(config, config_path, runs, [(translator, k) for translator in config.translators for k in ks])


def is_answerable(subject: Subject, index: int) -> bool:
    """Return whether the answer of a question is first after the whole human translation."""
    log = subject.human[index].log_mrr
    return bool(len(log)) and log[-1] == 0


def tells(panel: Panel, subject: Subject, finding: Finding) -> bool:
    """Return whether an error can show anything; the module's docstring gives the rule."""
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
    """Return the largest error of each data set and panel; raises NotComputable if there is none at all."""
    examples = []
    for dataset, panel in product(selection.datasets, KINDS):
        examples += sorted(candidates(selection, dataset, panel), key=Example.order)[:1]
    if not examples:
        raise NotComputable("figure 5, table 2: " + "; ".join(why for _, why in missing(selection, examples)))
    return examples


def missing(selection: Selection, examples: Iterable[Example]) -> list[tuple[str, str]]:
    """Return (data set, reason) for each panel without an example and each system that is left out."""
    shown = {(example.subject.dataset, example.panel) for example in examples}
    names = ", ".join(selection.config.translators)
    gone = []
    for dataset, (panel, kind) in product(selection.datasets, KINDS.items()):
        if (dataset, panel) not in shown:
            systems_of = f"5{panel}: {names} at k={selection.config.k(panel)}"
            gone.append((dataset, f"{systems_of} have no {kind} in a question whose answer is known"))
    return [*gone, *selection.left_out]


# -------------------------------------------------------------------------------------------------------- the items


def figure5(config_path: Path, runs: Path) -> None:
    """Write Figure 5 and Table 2: for each data set and panel a figure, its numbers and its texts.

    Table 2 has source, human translation, answer and the system's output.  Its hallucinated stretches are bold and
    numbered as in the figure; in (b) so are the words of the source that were lost, and [silence] stands where nothing
    was written for so long.
    """
    selection = load_systems(config_path, runs)
    outputs, examples = Outputs(selection.folder), chosen(selection)
    rows = [["panel", "dataset", "question", "system", "what", "text"]]
    for example in examples:
        subject, finding = example.subject, example.finding
        outputs.csv(f"{example.stem}.csv", numbers(subject, finding))
        outputs.picture(example.stem, draw, subject, finding, f"({example.panel}) ")
        where = [example.panel, subject.dataset, finding.question, subject.system]
        rows += [[*where, label, text] for label, text in texts(example)]
    rows += [["", label, "", "", "not computed", why] for label, why in missing(selection, examples)]
    outputs.csv("table2.csv", rows, show=True)
    outputs.end()


def texts(example: Example) -> Iterator[tuple[str, str]]:
    """Yield (label, text in Markdown) for each row of an example."""
    subject, finding = example.subject, example.finding
    question = subject.trace(finding).question
    lost = range(finding.span.start, finding.span.stop) if finding.span else range(0)
    yield "source", " ".join(f"**{word}**" if i in lost else word for i, word in enumerate(question.words))
    yield "human", question.reference_text
    yield "answer", question.page.replace("_", " ")
    yield subject.system, marked(example)
    if example.panel == "a":
        number = subject.marks(finding).index(finding) + 1
        what = f"rank {ranks(finding)}, {example.size:.2f} nats of log MRR lost"
        yield "error", f"({number}) {' '.join(finding.words)}: {what}"
    else:
        yield "error", f"nothing written over {100 * example.size:.0f}% of the source"


def marked(example: Example) -> str:
    """Return the system's output with hallucinated stretches numbered and bold, and the silence named."""
    subject, finding = example.subject, example.finding
    numbered = {mark.first: f"({number}) " for number, mark in enumerate(subject.marks(finding), 1)}
    inside = {step for mark in subject.marks(finding) for step in range(mark.first, mark.last + 1)}
    words = [
        numbered.get(step, "") + (f"**{emission.token}**" if step in inside else emission.token)
        for step, emission in enumerate(subject.trace(finding).emissions)
    ]
    if example.panel == "b":
        later = subject.lines[subject.index_of(finding)].sentence > finding.sentence
        words.insert(int(np.argmax(later)) if later.any() else len(words), "[silence]")
    return " ".join(words)


def table5(config_path: Path, runs: Path) -> None:
    """Write Table 5: the paper's questions where the data set has them, else the first with a known answer."""
    selection = load_systems(config_path, runs)
    rows = [["dataset", "question", "answer", "what", "text"]]
    for dataset in selection.datasets:
        subjects = [subject for subject in selection.subjects if subject.dataset == dataset]
        for index in shown_questions(selection, subjects[0]):
            question = subjects[0].run.questions[index]
            where = [dataset, question.id, question.page]
            rows += [[*where, "source", question.text], [*where, "human", question.reference_text]]
            for subject in (subject for subject in subjects if subject.k in selection.config.shown):
                written = " ".join(sentence for sentence in subject.run.traces[index].hypotheses if sentence)
                rows.append([*where, subject.system, written])
    if len(rows) == 1:
        raise NotComputable("table 5: no question whose answer is known; take another guesser in its config")
    rows += [[label, "", "", "not computed", why] for label, why in selection.left_out]
    outputs = Outputs(selection.folder)
    outputs.csv("table5.csv", rows, show=True)
    outputs.end()


def shown_questions(selection: Selection, subject: Subject) -> list[int]:
    """Return the indices of the shown questions of a data set."""
    wanted = {key(page) for page in selection.config.pages}
    questions = subject.run.questions
    named = [index for index, question in enumerate(questions) if key(question.page) in wanted]
    return named or [index for index in range(len(questions)) if is_answerable(subject, index)][:QUESTIONS]
