"""Split a run into blocks that any process can compute, in any order that the stages allow.

    workshop = workshop_of(store)
    planned = workshop.plan(config)                       # stages and number of blocks
    workshop.make(config, planned.stages[0], index=3)     # returns False if the block was stored

`sqa.pipeline.engine.run` then finds the blocks in the store, because their keys do not depend on the process.

Questions that belong to no data set (sentences of a news test set, examples of a board) must first be stored:

    given = store.keep(questions)                         # a fingerprint, small enough to send with every task
    planned = workshop.plan(config, given=given)
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from sqa.core.errors import ConfigError, DataError
from sqa.core.trace import Column, QuestionTrace, Table
from sqa.core.types import ChecksTexts, Question
from sqa.files.store import ROWS, Stage, Store, blocks_of, digest, read_rows
from sqa.pipeline.config import RunConfig, to_mapping
from sqa.pipeline.engine import BLOCK_SIZE, Work
from sqa.pipeline.folder import RunFolder, read
from sqa.pipeline.parts import Parts
from sqa.pipeline.saving import CONFIG, REPORT, SUMMARY

COMPONENTS = 24  # components cached per process: models of current runs only
WORKS = 32  # runs whose plans and components are cached
GIVEN = 8  # question sets of `Store.keep` cached in memory per process


BlockPart = tuple[int, int, int]  # index of the block, number of the part, number of parts
Tables = dict[str, Table]  # stage key -> table


@dataclass(frozen=True, slots=True)
class Planned:
    """The stages and block sizes of a run."""

    stages: tuple[Stage, ...]  # in the order of STAGES
    words: tuple[int, ...]  # source words of each block, at least 1

    @property
    def blocks(self) -> int:
        """Number of blocks of each stage."""
        return len(self.words)


class Workshop:
    """Per-process cache of questions, components and plans, shared by the blocks of many runs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.parts = Parts(COMPONENTS)
        self._works: dict[str, Work] = {}

    def plan(self, config: RunConfig, until: str = "score", given: str | None = None) -> Planned:
        """Return the stages of a run up to `until`, after loading their components and checking the questions.

        `given` is the fingerprint (`Store.keep`) of questions that replace those of `config.dataset`.
        """
        work = self._work(config, until, given)
        return Planned(tuple(work.stages.values()), words_of(work.questions))

    def _work(self, config: RunConfig, until: str, given: str | None) -> Work:
        """Return the work of a run, from the cache unless the user's code was edited."""
        identity = digest([until, given, to_mapping(config) | {"name": ""}])
        work = self._works.pop(identity, None)
        if work is None or not all(code.current() for codes in work.codes.values() for code in codes):
            questions, dataset = (
                self.parts.dataset(config.dataset) if given is None else (_given(self.store, given), given)
            )
            whole = self.parts.whole(config.dataset) if given is None else None
            work = Work(config, self.store, self.parts, questions, dataset, until, whole)
        self._works[identity] = work  # moves it to the end as the most recently used
        while len(self._works) > WORKS:
            del self._works[next(iter(self._works))]
        return work

    def finished(self, config: RunConfig, folder: Path) -> RunFolder | None:
        """Return a run's folder if `save` would write the same files; return None if the run must be computed.

        The folder must have this exact config, the stage keys must match the current components, and the store must
        have all blocks.  Runs with text metrics are always recomputed, because stage keys do not include the models of
        these metrics.
        """
        if config.quality or not all((folder / name).is_file() for name in (CONFIG, SUMMARY, REPORT)):
            return None
        try:
            saved = read(folder)
            if not saved.counts or saved.config != config:
                return None
        except (ConfigError, DataError):  # damaged: write it again
            return None
        work, blocks = self._work(config, "score", None), self.plan(config).blocks
        if work.of_texts or saved.stages != {name: stage.key for name, stage in work.stages.items()}:
            return None
        return None if any(self.store.missing(stage, blocks) for stage in work.stages.values()) else saved

    def make(
        self, config: RunConfig, wanted: Stage, index: int, given: str | None = None, until: str = "score"
    ) -> bool:
        """Compute a block of a stage; return False if it was stored already.

        The store must have the same block of every earlier stage.  `given` and `until` are as in `plan`.
        Raises DataError if models, code or questions differ from those of the process that planned the stage.
        """
        if self.store.has(wanted, index):
            return False
        work = self._planned_work(config, [wanted], given, until)
        # checked every time, since the store may have been emptied
        self.store.describe(wanted, lambda: work.key_parts(wanted.name))
        work.check(wanted.name, [index])
        work.make(wanted.name, index, lambda _: None)
        return True

    def part(
        self, config: RunConfig, wanted: Sequence[Stage], part: BlockPart, given: str | None, until: str, tables: Tables
    ) -> dict[str, float]:
        """Compute one of several equal parts of a block; return the seconds of each stage that the store lacked.

        tables: tables of this part by stage key.  New tables are added; no block is written to the store.  Raises
        DataError as in `make`.
        """
        work = self._planned_work(config, wanted, given, until)
        for stage in wanted:
            self.store.describe(stage, partial(work.key_parts, stage.name))
        index, number, parts = part
        block = blocks_of(work.questions, BLOCK_SIZE)[index]
        questions = block[number * len(block) // parts : (number + 1) * len(block) // parts]

        def rows(name: str) -> Mapping[str, Any]:
            stage = work.stages[name]
            if stage.key not in tables:
                return read_rows(self.store, stage, index, block)
            found = ROWS[name][1](tables[stage.key])
            return {q.id: found.get(q.id, ()) for q in questions}

        def traces(names: Collection[str] = tuple(work.stages)) -> list[QuestionTrace]:
            emissions, guesses, buzzes = (rows(name) if name in names else {} for name in ROWS)
            return [QuestionTrace(q, emissions[q.id], guesses.get(q.id), buzzes.get(q.id)) for q in questions]

        seconds = {}
        for stage in wanted:
            if stage.key not in tables and not self.store.has(stage, index):
                start = time.perf_counter()
                if stage.name == "guess" and isinstance(guesser := work.built["guess"], ChecksTexts):
                    guesser.check_texts(trace.prefixes.texts for trace in traces(["translate"]))
                with work.watched(stage.name), work.counting(stage.name, index):
                    tables[stage.key] = work.table(stage.name, questions, rows, traces, lambda _: None)
                seconds[stage.name] = time.perf_counter() - start
        return seconds

    def _planned_work(self, config: RunConfig, wanted: Sequence[Stage], given: str | None, until: str) -> Work:
        """Return the work of a run.  Raises DataError if its stages differ from the wanted ones."""
        work = self._work(config, until, given)
        for stage in wanted:
            if work.stages[stage.name] != stage:
                differ = "models, code or questions differ from those of the machine that planned it"
                remedy = "use the same version and files everywhere"
                raise DataError(f"{config.name}: stage {stage.name}: {differ}; {remedy}")
        return work


def words_of(questions: Sequence[Question]) -> tuple[int, ...]:
    """Return the number of source words of each block of questions, at least 1."""
    blocks = blocks_of(questions, BLOCK_SIZE)
    return tuple(max(1, sum(len(sentence) for q in block for sentence in q.sentences)) for block in blocks)


def joined_column(parts: Sequence[Column]) -> Column:
    """Return a column with the rows of all parts, concatenated; `parts` is not empty."""
    words: dict[str, int] = {}
    values, ends, n = [], [np.zeros(1, np.int32)], 0
    for part in parts:
        indices = [words.setdefault(word, len(words)) for word in part.words]
        is_text = part.kind.strip("[]") == "text"
        values.append(np.array([*indices, -1], part.values.dtype)[part.values] if is_text else part.values)
        if part.offsets is not None:
            ends.append(part.offsets[1:] + np.int32(n))
        n += len(part.values)
    offsets = None if parts[0].offsets is None else np.concatenate(ends)
    return Column(parts[0].kind, np.concatenate(values), tuple(words), offsets)


@lru_cache(maxsize=GIVEN)
def _given(store: Store, fingerprint: str) -> list[Question]:
    return store.kept(fingerprint)


@lru_cache(maxsize=1)
def workshop_of(store: Store) -> Workshop:
    """Return the workshop of this process for a store; that of another store, with its models, is dropped."""
    return Workshop(store)
