"""Runs that people play on: finished runs, or runs computed from a config for one game."""

import json
import random
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from sqa.core import answers
from sqa.core.errors import DataError
from sqa.core.trace import GUESSES, QuestionTrace
from sqa.core.types import Question
from sqa.data.own_questions import record_of
from sqa.files.atomic import write_text
from sqa.files.store import Store, blocks_of
from sqa.pipeline import engine, saving
from sqa.pipeline import folder as folders
from sqa.pipeline.config import DatasetConfig, RunConfig
from sqa.pipeline.folder import FinishedRun, RunFolder
from sqa.pipeline.parts import Parts
from sqa.report.data import check_distinct, run_names

QUESTIONS = "questions.jsonl"


class PlayedRun:
    """A finished run that any number of threads may read."""

    def __init__(self, name: str, saved: RunFolder, parts: Parts | None = None) -> None:
        self.name, self.saved = name, saved
        self.finished: FinishedRun = saved.open(parts)
        self._places = {question.id: index for index, question in enumerate(self.finished.questions)}
        self._lock = threading.Lock()  # traces cache the last block that was read

    @property
    def folder(self) -> Path:
        """Absolute path of the run's folder."""
        return self.saved.folder.resolve()

    @property
    def translation(self) -> str:
        """Store key of the translation."""
        return self.saved.stages["translate"]

    @property
    def answers(self) -> bool:
        """Whether the run has a guesser and a buzzer, so that people can play against it."""
        return {"guess", "buzz"} <= self.saved.stages.keys()

    def trace(self, question: str) -> QuestionTrace:
        """Return the trace of a question.  Raises DataError if the question is unknown."""
        if question not in self._places:
            raise DataError(f"{self.folder}: has no question {question!r}; this is not the run that was played")
        with self._lock:
            return self.finished.traces[self._places[question]]

    @cached_property
    def pages(self) -> list[str]:
        """Return all pages that the guesser named, and the answers.

        Without a guesser the list is empty, in order not to reveal the answers.
        """
        if "guess" not in self.saved.stages:
            return []
        store = Store(self.folder.parent)
        stage = store.stage("guess", self.saved.stages["guess"])
        pages = {question.page for question in self.finished.questions}
        for index in range(len(blocks_of(self.finished.questions, engine.BLOCK_SIZE))):
            pages.update(store.read(stage, index, GUESSES)["page"].words)
        return sorted({answers.key(page): answers.canonical(page) for page in pages if page.strip()}.values())


def open_runs(paths: Sequence[Path], parts: Parts) -> list[PlayedRun]:
    """Open the finished runs in distinct folders."""
    if paths:
        check_distinct(paths)
    return [PlayedRun(name, folders.read(path), parts) for name, path in zip(run_names(paths), paths, strict=True)]


def opponents(run: PlayedRun, runs: Iterable[PlayedRun]) -> list[PlayedRun]:
    """Return the runs on the same questions that have a buzzer, starting with the run itself."""
    own_first = (run, *(other for other in runs if other is not run))
    return [other for other in own_first if other.answers and other.finished.questions == run.finished.questions]


def drawn(questions: Sequence[Question], n: int, seen: set[str], seed: int) -> list[Question]:
    """Draw at most `n` questions in random order, without those whose source text a question in `seen` (ids) has."""
    texts = {question.text for question in questions if question.id in seen}
    shuffled = list(questions)
    random.Random(seed).shuffle(shuffled)
    chosen: list[Question] = []
    for question in shuffled:
        if len(chosen) < n and question.text not in texts:
            texts.add(question.text)
            chosen.append(question)
    return chosen


def write_questions(path: Path, questions: Iterable[Question]) -> DatasetConfig:
    """Write questions to a file (format of `sqa.data.datasets`), and return it as a data set of a config."""
    lines = (json.dumps(record_of(question), ensure_ascii=False) for question in questions)
    write_text(path, "".join(f"{line}\n" for line in lines))
    return DatasetConfig(str(path.resolve()))


def made_for_game(config: RunConfig, questions: Sequence[Question], folder: Path, parts: Parts) -> PlayedRun:
    """Run a config on these questions in `folder`."""
    config = replace(config, dataset=write_questions(folder / QUESTIONS, questions), quality=())
    result = engine.run(config, Store(folder), parts=parts, progress=False)
    return PlayedRun(config.name, folders.read(saving.save(result, folder)), parts)
