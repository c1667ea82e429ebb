"""Word-by-word views of systems (a translator at one k, answered by one guesser) from the runs of an ablation."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from experiments.contestants import names_of
from experiments.grid import AblationConfig, ablation_of, finished
from experiments.outputs import LeftOut
from sqa.core import ConfigError, K, QuestionTrace
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import load_detector
from sqa.diagnose.step_errors import TARGET, DiagnoseConfig, Finding, StepErrors, ranked, step_errors
from sqa.metrics.qa import log_reciprocal_rank
from sqa.pipeline import RunFolder, open_run
from sqa.pipeline.saving import SUMMARY
from sqa.report import plots
from sqa.report.steps import Beside, draw_steps

RULES = DiagnoseConfig()

Kind = Literal["hallucination", "omission", "under-translation", "drop"]


class Line(NamedTuple):
    """State at each of the n steps of one question, as arrays of shape (n,)."""

    read: np.ndarray  # source words read, over all sentences of the question
    fraction: np.ndarray  # share of the question's source characters read, 0 to 1
    sentence: np.ndarray  # 0-based index of the sentence
    log_mrr: np.ndarray  # natural logarithm of 1 / rank, RULES.floor if the answer is not in the list


@dataclass(frozen=True, slots=True)
class Subject:
    """One system on one data set."""

    dataset: str
    k: K
    guesser: str
    run: RunFolder
    errors: tuple[StepErrors, ...]  # one per question
    lines: tuple[Line, ...]
    human: tuple[Line, ...]  # lines of the human translation; empty if there are none
    indices: Mapping[str, int]  # id of a question -> its index in the four fields above
    family: str = "wait-k"  # the translator's name in the ablation

    @property
    def system(self) -> str:
        """Name of the system in figures and tables."""
        name = "full input" if self.k == "full" else f"wait-{self.k}"
        return name if self.family == "wait-k" else f"{self.family}, {name}"

    def index_of(self, finding: Finding) -> int:
        """Return the index of a finding's question."""
        return self.indices[finding.question]

    def findings(self, kind: Kind) -> list[Finding]:
        """Return the findings of a kind, worst first."""
        findings = ranked(finding for errors in self.errors for finding in errors.findings)
        return [finding for finding in findings if self.kind(finding) == kind]

    def kind(self, finding: Finding) -> Kind:
        """Return the kind of a finding; omissions after which nothing is written are under-translations."""
        if finding.kind != "omission" or finding.span is None:
            return finding.kind
        line = self.lines[self.index_of(finding)]
        goes_on = (line.sentence == finding.sentence) & (line.read >= finding.span.stop)
        return "omission" if goes_on.any() else "under-translation"

    def silence(self, finding: Finding) -> tuple[float, float]:
        """Return the shares of the source read when writing stopped at an under-translation and when it resumed."""
        line = self.lines[self.index_of(finding)]
        before = np.flatnonzero(line.sentence <= finding.sentence)
        after = np.flatnonzero(line.sentence > finding.sentence)
        start = float(line.fraction[before[-1]]) if len(before) else 0.0
        return start, float(line.fraction[after[0]]) if len(after) else 1.0

    def draw(self, index: int, finding: Finding | None, panel: str = "") -> plots.Figure:
        """Draw a question word by word, beside the human translation, with the mark of a finding larger."""
        trace, lines = self.run.traces[index], self.human[index : index + 1]
        beside = next((Beside("human translation", line.fraction, line.log_mrr) for line in lines), None)
        silent = finding is not None and self.kind(finding) == "under-translation"
        silence = self.silence(finding) if finding is not None and silent else None
        title = f"{panel}{self.system}, answered by {self.guesser}"
        return draw_steps(trace, self.errors[index], title, beside, finding, silence)

    def numbers(self, index: int) -> list[list[str]]:
        """Return the numbers in the picture: a row for each word of the system, then of the human translation."""
        trace, errors = self.run.traces[index], self.errors[index]
        rows = [["question", "of", "step", "source_words", "source_read", "word", "links", "unaligned", "log_mrr"]]
        for name, line in ((self.system, self.lines[index]), *(("human", h) for h in self.human[index : index + 1])):
            for step, (words, read, log) in enumerate(zip(line.read, line.fraction, line.log_mrr, strict=True)):
                word = ["", "", "n/a"]
                if name != "human":
                    links = " ".join(map(str, errors.links[step]))
                    word = [trace.emissions[step].token, links, str(int(errors.unaligned[step]))]
                rows.append([errors.question, name, str(step), str(words), f"{read:.6f}", *word, f"{log:.6f}"])
        return rows


class Selection(NamedTuple):
    """Systems that an item compares."""

    config: Any  # config of the item: its name, the ablation, its guesser, and more
    ablation: AblationConfig
    subjects: list[Subject]
    left_out: list[LeftOut]
    folder: Path  # folder of the item's results

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(subject.dataset for subject in self.subjects))


def systems(config: Any, config_path: Path, runs: Path, wanted_systems: Collection[tuple[str, K]]) -> Selection:
    """Return the wanted systems, pairs (translator, k), on every data set; missing runs are computed.

    A system whose words cannot be aligned is left out, and the reason is reported.  A translator that is not available
    has no systems.
    """
    base = replace(ablation_of(config, config_path.parent), sweeps={})
    names = names_of(base.contestants).values()
    missing = dict.fromkeys(k for _, k in wanted_systems if k not in base.k)
    wrong = [f"k: {k} is not in {config.ablation}" for k in missing]
    if config.guesser not in names:
        wrong += [f"guesser: {config.guesser!r} is not a contestant of {config.ablation}, which has {', '.join(names)}"]
    if wrong:
        raise ConfigError(wrong)
    wanted = {("reference", "full"), *wanted_systems}
    rows = finished(base, runs, lambda cell: cell.contestant == config.guesser and (cell.family, cell.k) in wanted)
    selection = Selection(config, base, [], [], runs / config.name)
    human: dict[str, tuple[Line, ...]] = {}
    for row in sorted(rows, key=lambda row: row.cell.family != "reference"):
        cell, folder, aligned = row.cell, row.saved.folder, row.cell.family != "reference"
        try:
            run, lines, errors = opened(folder, aligned, (folder / SUMMARY).read_bytes())
        except ConfigError as reason:
            name = "" if cell.family == "wait-k" else f"{cell.family}, "
            selection.left_out.append(LeftOut(f"{cell.dataset}, {name}k={cell.k}", " ".join(str(reason).split())))
            print(f"{selection.left_out[-1].label}: left out, {reason}", file=sys.stderr)
            continue
        if not aligned:
            human[cell.dataset] = lines
            continue
        index_of = {question.id: index for index, question in enumerate(run.questions)}
        known = (run, errors, lines, human[cell.dataset], index_of)
        selection.subjects.append(Subject(cell.dataset, cell.k, cell.contestant, *known, cell.family))
    return selection


@lru_cache(maxsize=32)
def opened(folder: Path, aligned: bool, _: bytes) -> tuple[RunFolder, tuple[Line, ...], tuple[StepErrors, ...]]:
    """Return a run, its lines and, if `aligned`, its errors; the run's summary is part of the cache key."""
    run = open_run(folder)
    traces = list(run.traces)
    if not aligned:
        return run, tuple(map(line_of, traces)), ()
    language = run.questions[0].language
    aligner = load_aligner(f"{language}-{TARGET}", cache=folder / "links.json")
    errors = step_errors(traces, aligner, RULES, load_detector(language))
    return run, tuple(map(line_of, traces)), tuple(errors)


def line_of(trace: QuestionTrace) -> Line:
    """Return the state of a question at each step."""
    sentence = np.array([emission.sentence for emission in trace.emissions], dtype=np.int64)
    logs = log_reciprocal_rank(trace.rank, RULES.top, RULES.floor)
    return Line(trace.source_words, trace.fraction, sentence, logs)
