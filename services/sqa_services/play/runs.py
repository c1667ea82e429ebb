"""The runs that people play on: finished ones by their folders, or a config whose run is made for each game."""

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
    """A finished run, for any number of threads."""

    def __init__(self, name: str, saved: RunFolder, parts: Parts | None = None) -> None:
        self.name, self.saved = name, saved
        self.finished: FinishedRun = saved.open(parts)
        self._places = {question.id: index for index, question in enumerate(self.finished.questions)}
        self._lock = threading.Lock()  # traces keep the block that was read last

    @property
    def folder(self) -> Path:
        """Where it lies, the same in every process."""
        return self.saved.folder.resolve()

    @property
    def translation(self) -> str:
        """The store key of its translation."""
        return self.saved.stages["translate"]

    @property
    def answers(self) -> bool:
        """Whether it has a guesser and a buzzer, so that it can be played against."""
        return {"guess", "buzz"} <= self.saved.stages.keys()

    def trace(self, question: str) -> QuestionTrace:
        """What it did on a question.  One that is not its own: DataError."""
        if question not in self._places:
            raise DataError(f"{self.folder}: has no question {question!r}; it is another run than was played")
        with self._lock:
            return self.finished.traces[self._places[question]]

    @cached_property
    def pages(self) -> list[str]:
        """Every page that its guesser ever named, and the answers among them; none without a guesser.

        Without one the list would be that of the answers alone, which would give them away.
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
    """The finished runs in these folders, each given once."""
    if paths:
        check_distinct(paths)
    return [PlayedRun(name, folders.read(path), parts) for name, path in zip(run_names(paths), paths, strict=True)]


def opponents(run: PlayedRun, runs: Iterable[PlayedRun]) -> list[PlayedRun]:
    """The runs on the same questions that can be played against, its own first."""
    own_first = (run, *(other for other in runs if other is not run))
    return [other for other in own_first if other.answers and other.finished.questions == run.finished.questions]


def drawn(questions: Sequence[Question], n: int, seen: set[str], seed: int) -> list[Question]:
    """At most `n` questions in a random order, none whose source text is that of a question in `seen` (ids)."""
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
    """Questions as a file (format: `sqa.data.datasets`), and its name for a config."""
    lines = []
    for q in questions:
        source = [" ".join(words) for words in q.sentences]
        line = {"id": q.id, "language": q.language, "page": q.page, "source": source, "reference": q.reference}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))
    return DatasetConfig(str(path.resolve()))


def made_for_game(config: RunConfig, questions: Sequence[Question], folder: Path, parts: Parts) -> PlayedRun:
    """Let a config's model translate these questions now; the run that it makes lies in `folder`."""
    config = replace(config, dataset=write_questions(folder / QUESTIONS, questions), quality=())
    result = engine.run(config, Store(folder), parts=parts, progress=False)
    return PlayedRun(config.name, folders.read(saving.save(result, folder)), parts)
