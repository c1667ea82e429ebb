"""Questions of Figure 5 and Tables 2 and 5, which the config names; by default they are the paper's own.

A question is shown as each configured system (a translator at one k, answered by one guesser) translates it in the
ablation's runs, with its worst error of the panel's kind:

    (a) the hallucination at which log MRR falls most
    (b) the under-translation with the longest silence: source words are lost, and no more of their sentence is written;
        the silence is the share of the question's characters read meanwhile

A translator that is not available is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from experiments.contestants import names_of
from experiments.grid import ablation_of, finished, part_of_name
from experiments.outputs import LeftOut
from sqa.core import ConfigError, Count, Floats, Ints, K, NotComputable, Question, QuestionTrace
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import load_detector
from sqa.diagnose.step_errors import TARGET, DiagnoseConfig, Finding, StepErrors, ranked, step_errors
from sqa.metrics.qa import log_reciprocal_rank
from sqa.pipeline import RunFolder, load, open_run
from sqa.pipeline.saving import SUMMARY
from sqa.report import plots
from sqa.report.steps import Beside, draw_steps

RULES = DiagnoseConfig()
Panel = Literal["a", "b"]


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


class Subject(NamedTuple):
    """One system on one data set."""

    dataset: str
    family: str  # the translator's name in the ablation
    k: K
    guesser: str
    run: RunFolder
    errors: tuple[StepErrors, ...]  # one per question
    human: RunFolder | None  # run of the human translation on the same questions

    @property
    def system(self) -> str:
        """Name of the system in figures and tables."""
        name = "full input" if self.k == "full" else f"wait-{self.k}"
        return name if self.family == "wait-k" else f"{self.family}, {name}"


class Selection(NamedTuple):
    """The systems of a config."""

    config: ExamplesConfig
    subjects: list[Subject]
    left_out: list[LeftOut]
    folder: Path  # folder of the results


class Example(NamedTuple):
    """One question as translated by one system."""

    panel: Panel
    subject: Subject
    at: int  # index of the question
    finding: Finding | None  # worst error of the panel's kind; None if the question has none

    @property
    def question(self) -> Question:
        return self.subject.run.questions[self.at]

    @property
    def trace(self) -> QuestionTrace:
        return self.subject.run.traces[self.at]

    @property
    def errors(self) -> StepErrors:
        return self.subject.errors[self.at]

    @property
    def human(self) -> QuestionTrace | None:
        """Trace of the human translation."""
        human = self.subject.human
        return None if human is None else human.traces[self.at]

    @property
    def silence(self) -> tuple[float, float] | None:
        """Shares of the source read when writing stopped at an under-translation and when it resumed; None in (a)."""
        if self.finding is None or self.panel == "a":
            return None
        written, read = sentences(self.trace), self.trace.fraction
        before, after = read[written <= self.finding.sentence], read[written > self.finding.sentence]
        return float(before[-1]) if len(before) else 0.0, float(after[0]) if len(after) else 1.0

    @property
    def size(self) -> float:
        """Nats lost (a), or share of the question read in silence (b)."""
        if self.silence:
            return self.silence[1] - self.silence[0]
        return self.finding.loss if self.finding else 0.0

    def draw(self) -> plots.Figure:
        """Draw the question word by word, beside the human translation, with the mark of the finding larger."""
        title = f"({self.panel}) {self.subject.system}, answered by {self.subject.guesser}"
        beside = Beside("human translation", self.human.fraction, logs(self.human)) if self.human else None
        return draw_steps(self.trace, self.errors, title, beside, self.finding, self.silence)

    def numbers(self) -> Iterator[list[str]]:
        """Yield the numbers in the picture: a row for each word of the system, then of the human translation."""
        yield ["question", "of", "step", "source_words", "source_read", "word", "links", "unaligned", "log_mrr"]
        errors = self.errors
        for name, trace in ((self.subject.system, self.trace), ("human", self.human)):
            steps = zip(trace.source_words, trace.fraction, logs(trace), strict=True) if trace else ()
            for step, (words, read, log) in enumerate(steps):
                word = ["", "", "n/a"]
                if trace and name != "human":
                    links = " ".join(map(str, errors.links[step]))
                    word = [trace.emissions[step].token, links, str(int(errors.unaligned[step]))]
                yield [errors.question, name, str(step), str(words), f"{read:.6f}", *word, f"{log:.6f}"]


def sentences(trace: QuestionTrace) -> Ints:
    """Return the index of the sentence of each step, (n,)."""
    return np.array([emission.sentence for emission in trace.emissions], dtype=np.int64)


def logs(trace: QuestionTrace) -> Floats:
    """Return log MRR at each step, (n,)."""
    return log_reciprocal_rank(trace.rank, RULES.top, RULES.floor)


def stem(example: Example, translators: Iterable[str]) -> str:
    """Return the name of an example's files."""
    family = example.subject.family
    other = "" if family == next(iter(translators)) else f"_{part_of_name(family)}"
    return f"figure5{example.panel}_{example.subject.dataset}{other}"


def load_systems(config_path: Path, runs: Path) -> Selection:
    """Return the systems of a config on every data set, from the ablation's runs; missing runs are computed.

    A system whose words cannot be aligned is left out, and the reason is reported.
    """
    config = load(config_path, ExamplesConfig)
    base = replace(ablation_of(config, config_path.parent), sweeps={})
    names = names_of(base.contestants).values()
    ks = dict.fromkeys(question.k for question in config.questions.values())
    wrong = [f"k: {k} is not in {config.ablation}" for k in ks if k not in base.k]
    if config.guesser not in names:
        wrong += [f"guesser: {config.guesser!r} is not a contestant of {config.ablation}, which has {', '.join(names)}"]
    if wrong:
        raise ConfigError(wrong)
    wanted = {("reference", "full"), *product(config.translators, ks)}
    rows = finished(base, runs, lambda cell: cell.contestant == config.guesser and (cell.family, cell.k) in wanted)
    human = {row.dataset: open_run(row.saved.folder) for row in rows if row.cell.family == "reference"}
    selection = Selection(config, [], [], runs / config.name)
    for row in (row for row in rows if row.cell.family != "reference"):
        cell, folder = row.cell, row.saved.folder
        try:
            run, errors = opened(folder, (folder / SUMMARY).read_bytes())
        except ConfigError as reason:
            name = "" if cell.family == "wait-k" else f"{cell.family}, "
            selection.left_out.append(LeftOut(f"{cell.dataset}, {name}k={cell.k}", " ".join(str(reason).split())))
            print(f"{selection.left_out[-1].label}: left out, {reason}", file=sys.stderr)
        else:
            known = (cell.dataset, cell.family, cell.k, cell.contestant)
            selection.subjects.append(Subject(*known, run, errors, human.get(cell.dataset)))
    return selection


@lru_cache(maxsize=32)
def opened(folder: Path, _: bytes) -> tuple[RunFolder, tuple[StepErrors, ...]]:
    """Return a run and its errors; the run's summary is part of the cache key."""
    run = open_run(folder)
    language = run.questions[0].language
    aligner = load_aligner(f"{language}-{TARGET}", cache=folder / "links.json")
    return run, tuple(step_errors(run.traces, aligner, RULES, load_detector(language)))


def worst(panel: Panel, subject: Subject, index: int) -> Example:
    """Return a question as an example, with its largest error of the panel's kind.

    An omission is an under-translation if no word of its sentence is written after its span was read.
    """
    trace, found = subject.run.traces[index], ranked(subject.errors[index].findings)
    if panel == "a":
        found = [finding for finding in found if finding.kind == "hallucination"]
    else:
        last = dict(zip(sentences(trace).tolist(), trace.source_words.tolist(), strict=True))  # read at its last word
        omissions = ((f, f.span) for f in found if f.kind == "omission")
        found = [f for f, span in omissions if span is not None and last.get(f.sentence, 0) < span.stop]
    examples = [Example(panel, subject, index, finding) for finding in (*found, None)]
    return min(examples, key=lambda example: (-example.size, example.finding.first if example.finding else 0))


def chosen(selection: Selection) -> list[Example]:
    """Return the question of each panel as every system translates it; raises NotComputable if there is none."""
    examples = [
        worst(panel, subject, ids.index(named.id))
        for panel, named in selection.config.questions.items()
        for subject in selection.subjects
        if subject.k == named.k and named.id in (ids := [question.id for question in subject.run.questions])
    ]
    if not examples:
        raise NotComputable("figure 5, tables 2 and 5: " + "; ".join(why for _, why in missing(selection, examples)))
    return examples


def missing(selection: Selection, examples: Iterable[Example]) -> list[tuple[str, str]]:
    """Return a pair (question or system, reason) for each question that no run has and each system that is left out."""
    shown = {example.panel for example in examples}
    datasets = dict.fromkeys(subject.dataset for subject in selection.subjects)
    names = f"{', '.join(selection.config.translators)} on {', '.join(datasets)}"
    gone = [
        (named.id, f"5{panel}: no run of {names} has {named.id} at k={named.k}")
        for panel, named in selection.config.questions.items()
        if panel not in shown
    ]
    return [*gone, *selection.left_out]
