"""Compute the blocks of runs in any process and in any order.

    workshop_of(store).make(config, index=3)              # all stages of the fourth block that the store lacks

`sqa.pipeline.engine.run` then finds the blocks in the store, because their keys do not depend on the process.

Questions that belong to no data set (sentences of a news test set, examples of a board) must first be stored:

    given = store.keep(questions)                         # a fingerprint, small enough to send with every task
    workshop_of(store).make(config, 3, given)
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from sqa.core.errors import ConfigError, DataError
from sqa.core.types import Question
from sqa.files.store import Store, blocks_of, digest
from sqa.pipeline.config import RunConfig, to_mapping
from sqa.pipeline.engine import BLOCK_SIZE, Work
from sqa.pipeline.folder import RunFolder, read
from sqa.pipeline.parts import Parts
from sqa.pipeline.saving import CONFIG, REPORT, SUMMARY

COMPONENTS = 24  # components cached per process: models of current runs only
WORKS = 32  # runs whose stages and components are cached
GIVEN = 8  # question sets of `Store.keep` cached in memory per process


class Workshop:
    """Per-process cache of questions, components and stages, shared by the blocks of many runs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.parts = Parts(COMPONENTS)
        self._works: dict[str, Work] = {}

    def questions(self, config: RunConfig, given: str | None = None) -> list[Question]:
        """Return the questions of a run; `given` is the fingerprint of those that replace `config.dataset`."""
        return self.parts.questions(config.dataset) if given is None else _given(self.store, given)

    def work(self, config: RunConfig, until: str = "score", given: str | None = None) -> Work:
        """Return the work of a run up to a stage, from the cache unless the user's code was edited."""
        identity = digest([until, given, to_mapping(config) | {"name": ""}])
        work = self._works.pop(identity, None)
        if work is None or not all(code.current() for codes in work.codes.values() for code in codes):
            dataset = self.parts.dataset(config.dataset)[1] if given is None else given
            whole = self.parts.whole(config.dataset) if given is None else None
            work = Work(config, self.store, self.parts, self.questions(config, given), dataset, until, whole)
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
        work = self.work(config)
        if work.of_texts or saved.stages != {name: stage.key for name, stage in work.stages.items()}:
            return None
        return None if work.lacking() else saved

    def make(self, config: RunConfig, index: int, given: str | None = None, until: str = "score") -> dict[str, float]:
        """Compute a block of all stages up to `until`; return the seconds of each stage that the store lacked."""
        work, seconds = self.work(config, until, given), dict[str, float]()
        for name, stage in work.stages.items():
            if not self.store.has(stage, index):
                start = time.perf_counter()
                # checked every time, since the store may have been emptied
                self.store.describe(stage)
                work.check(name, [index])
                work.make(name, index, lambda _: None)
                seconds[name] = time.perf_counter() - start
        return seconds


def words_of(questions: Sequence[Question]) -> tuple[int, ...]:
    """Return the number of source words of each block of questions, at least 1."""
    blocks = blocks_of(questions, BLOCK_SIZE)
    return tuple(max(1, sum(len(sentence) for q in block for sentence in q.sentences)) for block in blocks)


@lru_cache(maxsize=GIVEN)
def _given(store: Store, fingerprint: str) -> list[Question]:
    return store.kept(fingerprint)


@lru_cache(maxsize=1)
def workshop_of(store: Store) -> Workshop:
    """Return the workshop of this process for a store; that of another store, with its models, is dropped."""
    return Workshop(store)
