"""Systems seen word by word: a translator at one k, answered by one guesser, from the runs of an ablation."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.contestants import names_of
from experiments.grid import AblationConfig, finished, workshop
from experiments.outputs import LeftOut
from experiments.stepwise.rows import RULES, Line, Subject
from sqa.core.errors import ConfigError
from sqa.core.trace import QuestionTrace
from sqa.diagnose.alignment import SEEDS, load_aligner
from sqa.diagnose.detector import load_detector
from sqa.diagnose.step_errors import TARGET, StepErrors, step_errors
from sqa.metrics.qa import log_reciprocal_rank
from sqa.run.config import load
from sqa.run.folder import FinishedRun, open_run
from sqa.run.saving import SUMMARY


class Selection(NamedTuple):
    """What an item is made from."""

    config: Any  # of the item: its name, the ablation that it is about, its guesser, and more
    ablation: AblationConfig
    subjects: list[Subject]
    left_out: list[LeftOut]
    folder: Path  # the item's results go here

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(subject.dataset for subject in self.subjects))


def systems(config: Any, config_path: Path, runs: Path, wanted_systems: Collection[tuple[str, int | str]]) -> Selection:
    """Each (translator, k) on every data set, in the order of the config's ablation; what the store lacks is run.

    One whose words cannot be aligned is left out with the reason.  A translator that is not available has no systems.
    """
    base = replace(load(config_path.parent / config.ablation, AblationConfig), sweeps={})
    names = names_of(base.contestants).values()
    wrong = [
        f"k: {k} is not in {config.ablation}" for k in dict.fromkeys(k for _, k in wanted_systems) if k not in base.k
    ]
    if config.guesser not in names:
        wrong += [f"guesser: {config.guesser!r} is no contestant of {config.ablation}, which has {', '.join(names)}"]
    if wrong:
        raise ConfigError(wrong)
    wanted = {("reference", "full"), *wanted_systems}
    rows = finished(base, runs, lambda cell: cell.guesser == config.guesser and (cell.family, cell.k) in wanted)
    subjects: list[Subject] = []
    left_out: list[LeftOut] = []
    human: dict[str, tuple[Line, ...]] = {}
    for cell in sorted((row.cell for row in rows), key=lambda cell: cell.family != "reference"):
        folder, aligned = runs / cell.run.name, cell.family != "reference"
        try:
            run, lines, errors = _opened(folder, aligned, (folder / SUMMARY).read_bytes())
        except ConfigError as reason:
            name = "" if cell.family == "wait-k" else f"{cell.family}, "
            left_out.append(LeftOut(f"{cell.dataset}, {name}k={cell.k}", " ".join(str(reason).split())))
            print(f"{left_out[-1].label}: left out, {reason}", file=sys.stderr)
            continue
        if aligned:
            index_of = {question.id: index for index, question in enumerate(run.questions)}
            subject = Subject(
                cell.dataset, cell.k, cell.guesser, run, errors, lines, human[cell.dataset], index_of, cell.family
            )
            subjects.append(subject)
        else:
            human[cell.dataset] = lines
    return Selection(config, base, subjects, left_out, runs / config.name)


@lru_cache(maxsize=32)
def _opened(folder: Path, aligned: bool, _: bytes) -> tuple[FinishedRun, tuple[Line, ...], tuple[StepErrors, ...]]:
    """A run, its lines and if `aligned` its errors; the run's summary is in the key."""
    run = open_run(folder, workshop(folder.parent).parts)
    traces = list(run.traces)
    return run, tuple(map(_line, traces)), _errors(run, traces, "", SEEDS) if aligned else ()


def errors_of_seeds(run: FinishedRun, seeds: Sequence[int]) -> list[tuple[StepErrors, ...]]:
    """The errors of each question as the alignment of each seed finds them alone, in place of their mean."""
    traces = list(run.traces)  # read once for all seeds
    return [_errors(run, traces, f".seed{seed}", (seed,)) for seed in seeds]


def _errors(run: FinishedRun, traces: list[QuestionTrace], part: str, seeds: Sequence[int]) -> tuple[StepErrors, ...]:
    """The errors of each question; links and the words' probabilities stay in the run's folder."""
    language = run.questions[0].language
    aligner = load_aligner(f"{language}-{TARGET}", cache=run.folder / f"links{part}.json", seeds=seeds)
    return tuple(step_errors(traces, aligner, RULES, load_detector(language, cache=run.folder / f"words{part}.json")))


def _line(trace: QuestionTrace) -> Line:
    sentence = np.array([emission.sentence for emission in trace.emissions], dtype=np.int64)
    logs = log_reciprocal_rank(trace.rank, RULES.top, RULES.floor)
    return Line(trace.source_words, trace.fraction, sentence, logs)
