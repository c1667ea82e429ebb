"""Distribute many runs over workers: a call computes a block of questions by all stages of a group of runs.

    for folder in run_all([config, ...], runs, workers=workers):  # sweeps, experiments, grids
        ...

Runs with the same translator and questions form a group and share its translation.  A worker loads the models,
computes a block and writes it to the store.  After the last block, a worker makes the files of the run's folder.  The
workers are processes on this machine (sqa/pipeline/pool.py), or Dask's inside `scheduled(...)`.  Few questions are
processed in this process, which is faster than starting a worker.
"""

import random
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from sqa.core import ConfigError, DataError, Question, bar, usable
from sqa.core.registry import model_size
from sqa.core.types import ChecksTexts
from sqa.files import Store, blocks_of, digest
from sqa.pipeline.config import RunConfig, to_mapping
from sqa.pipeline.engine import BLOCK_SIZE, FEW, Parts, Recent, Work, run
from sqa.pipeline.folder import RunFolder, read
from sqa.pipeline.pool import Call, Processes, in_process, results
from sqa.pipeline.saving import pack, unpack
from sqa.pipeline.scheduler import current

COMPONENTS = 24  # components cached per process: models of current runs only
WORKS = 32  # runs whose stages and components are cached
GIVEN = 8  # question sets of `Store.keep` cached in memory per process


class Workshop:
    """Per-process cache of questions, components and stages, shared by the blocks of many runs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.parts = Parts(COMPONENTS)
        self._works = Recent(WORKS)

    def questions(self, config: RunConfig, given: str | None = None) -> list[Question]:
        """Return the questions of a run; `given` is the fingerprint of those that replace `config.dataset`."""
        return self.parts.questions(config.dataset) if given is None else _given(self.store, given)

    def work(self, config: RunConfig, until: str = "score", given: str | None = None) -> Work:
        """Return the work of a run up to a stage, from the cache unless the user's code was edited."""
        identity = digest([until, given, to_mapping(config) | {"name": ""}])

        def build() -> tuple[Work, Sequence[Any]]:
            questions = None if given is None else (_given(self.store, given), given)
            work = Work(config, self.store, self.parts, questions, until)
            return work, work.codes

        made: Work = self._works.get(identity, build)
        return made

    def finished(self, config: RunConfig, folder: Path) -> RunFolder | None:
        """Return a run's folder if `save` would write the same files; return None if the run must be computed.

        The folder must have this exact config, the stage keys must match the current components, and the store must
        have all blocks.  Runs with text metrics are always recomputed, because stage keys do not include the models of
        these metrics.
        """
        if config.quality:
            return None
        try:
            saved = read(folder)
            if not saved.counts or saved.config != config:
                return None
        except (ConfigError, DataError):  # missing or damaged: write it again
            return None
        work = self.work(config)
        if work.of_texts or saved.stages != {name: stage.key for name, stage in work.stages.items()}:
            return None
        return None if work.lacking() else saved

    def make(self, config: RunConfig, index: int, given: str | None = None, until: str = "score") -> None:
        """Compute a block of all stages up to `until` that the store lacks."""
        work = self.work(config, until, given)
        for name, stage in work.stages.items():
            if not self.store.block(stage, index).is_file():
                # checked every time, since the store may have been emptied
                self.store.describe(stage)
                work.check(name, [index])
                work.make(name, index, lambda _: None)


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


# ----------------------------------------------------------------------------------------------------------------- runs

LARGE = 4  # time per word of a run with a large model, in that of other runs, for estimates
NVIDIA = Path("/dev/nvidiactl")  # file that exists if there is a GPU, which `device: auto` then uses


@dataclass(frozen=True, slots=True)
class Job:
    """A run, or its first stages."""

    config: RunConfig
    until: str = "score"
    given: str | None = None  # fingerprint of stored questions (`Store.keep`) that replace those of config.dataset
    beside: str = ""  # label of runs with different k that can share work, such as translated prefixes, in a process

    @property
    def large(self) -> bool:
        """Whether a part of the run has a large model."""
        parts = (self.config.translator, self.config.guesser, self.config.buzzer)
        return any(part is not None and model_size(part.name) == "large" for part in parts)

    @property
    def gpu(self) -> bool:
        """Whether the translator runs on a GPU."""
        device = str(getattr(self.config.translator.options, "device", "cpu"))
        return device.startswith("cuda") or (device == "auto" and current() is None and NVIDIA.exists())

    def group(self) -> str:
        """Return a key that is equal for runs whose blocks are computed by one call."""
        translator = self.config.translator
        shared = self.beside or to_mapping(translator)
        if self.beside and getattr(translator.options, "SEPARATE_K", False):
            shared = [translator.options.model, translator.options.k]
        return digest([to_mapping(self.config.dataset), self.given, shared])


def run_all(
    configs: Sequence[RunConfig],
    runs: Path,
    progress: bool = True,
    workers: int | None = None,
    beside: Sequence[str] = (),
) -> list[RunFolder]:
    """Run each config, write its folder, and return the folders in order; finished runs are loaded.

    progress: show a bar over the source words of the runs, with the newest value.  workers: as in `run_jobs`.
    beside: `Job.beside` of each config.
    """
    workshop, paths = workshop_of(Store(runs.resolve())), [runs / config.name for config in configs]
    saved = [workshop.finished(config, path) for config, path in zip(configs, paths, strict=True)]
    missing = [index for index, folder in enumerate(saved) if folder is None]
    jobs = [Job(configs[i], beside=beside[i] if beside else "") for i in missing]
    total = sum(_cost(job, sum(words_of(workshop.questions(job.config)))) for job in jobs)
    left = len(jobs)
    with bar("runs", total, unit="words", unit_scale=True, smoothing=0, disable=not progress or not jobs) as shown:
        for index, files in run_jobs(jobs, Store(runs), workers, shown.update) if jobs else ():
            unpack(files, paths[missing[index]])
            left -= 1
            saved[missing[index]] = folder = read(paths[missing[index]])
            row = next(iter(folder.report.values()))
            about = f"{len(configs) - left} of {len(configs)} runs; {folder.config.name}: {row.metric} {row.value}"
            shown.set_postfix_str(about, refresh=left + 1 == len(jobs))  # the first one at once
    return [folder for folder in saved if folder is not None]


def _cost(job: Job, words: int) -> int:
    """Return the number of source words, those of a large model counted LARGE times."""
    return words * (LARGE if job.large else 1)


def run_jobs(
    jobs: Sequence[Job], store: Store, workers: int | None = None, tick: Callable[[int], object] = lambda _: None
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield (index, files of the run's folder) of each job as it ends.  The first error cancels all jobs.

    workers: number of processes; None for one per processor that this process may use.  Inside `scheduled(...)` the
    scheduler's store replaces `store`.  tick: called with the cost of each block that has ended.
    """
    scheduler, number = current(), _processes(workers)
    store = store if scheduler is None else scheduler.store
    workshop = workshop_of(store)

    def groups(done: Collection[int]) -> list[list[Call]]:
        grouped: dict[str, dict[int, Job]] = {}
        for index, job in enumerate(jobs):
            if index not in done:
                grouped.setdefault(job.group(), {})[index] = job
        calls = [_group_calls(name, group, store, tick) for name, group in grouped.items()]
        if scheduler is not None:  # schedulers on the same store use different orders
            random.shuffle(calls)
            return [[call._replace(words=0) for call in group] for group in calls]
        # Small models and question sets first, so that the first runs and the pictures of small systems come early.
        return sorted(calls, key=lambda group: (group[0].large, sum(call.words for call in group)))

    if scheduler is not None:
        scheduler.client(number)
        return results(scheduler, groups)
    if number == 1 or sum(len(workshop.questions(job.config, job.given)) for job in jobs) <= FEW:
        return in_process(groups)
    return results(Processes(number), groups)


def _processes(workers: int | None) -> int:
    """Return the number of worker processes; 1 in a daemonic process, which cannot start any."""
    return 1 if current_process().daemon else workers or usable()


def make_ahead(work: Work, progress: bool, workers: int | None = None) -> None:
    """Compute the missing blocks of a run on workers if they have more than FEW questions.

    Nothing is computed with one worker, or if the guesser must see all texts first.

    Args:
        work: The run.
        progress: Whether a bar goes to stderr.
        workers: As in `run_jobs`.
    """
    number, store = _processes(workers), work.store
    questions = sum(len(work.blocks[index]) for index in work.lacking())
    if number == 1 or questions <= FEW or isinstance(work.built.get("guess"), ChecksTexts):
        return
    job, words = Job(work.config, work.until, work.given), words_of(work.questions)
    with ExitStack() as opened:
        for stage in work.stages.values():
            opened.enter_context(store.working_on(stage))
        total = len(work.questions)
        shown = opened.enter_context(bar("run", total, total - questions, disable=not progress))

        def ended(block: int) -> list[Call]:
            shown.update(len(work.blocks[block]))
            return []

        def groups(_: Collection[int]) -> list[list[Call]]:
            return [[_block_call("", (job,), b, words[b], store, partial(ended, b)) for b in work.lacking()]]

        deque(results(Processes(number), groups), maxlen=0)


def _group_calls(name: str, group: dict[int, Job], store: Store, tick: Callable[[int], object]) -> list[Call]:
    """Return the calls that compute the blocks of a group of runs; calls that finish each run follow them."""
    jobs = tuple(group.values())
    words = words_of(workshop_of(store).questions(jobs[0].config, jobs[0].given))
    finishing = [Call(_files, (job.config, store), index, title=job.config.name) for index, job in group.items()]
    left = len(words)

    def ended(block: int) -> list[Call]:
        nonlocal left
        left -= 1
        tick(sum(_cost(job, words[block]) for job in jobs))
        return [] if left else finishing

    blocks = random.sample(range(left), left)
    return [_block_call(name, jobs, b, words[b], store, partial(ended, b)) for b in blocks] or finishing


def _block_call(
    group: str, jobs: tuple[Job, ...], block: int, words: int, store: Store, then: Callable[[], list[Call]]
) -> Call:
    """Return the call that computes a block of each job; one on a GPU only translates, and another one follows it."""
    title = f"{jobs[0].config.name} block {block}"
    call = Call(_make, (jobs, block, store), None, then, words, group, jobs[0].large, title=title)
    if not jobs[0].gpu:
        return call
    translating = tuple(replace(job, until="translate") for job in jobs)
    return call._replace(arguments=(translating, block, store), then=lambda: [call], gpu=True)


# ------------------------------------------------------------------------------------------------- calls of workers


def _make(jobs: Sequence[Job], block: int, store: Store) -> None:
    """Compute a block of each run."""
    for job in jobs:
        workshop_of(store).make(job.config, block, job.given, job.until)


def _files(config: RunConfig, store: Store) -> dict[str, bytes]:
    """Return the files of a run's folder, on a worker whose store has all blocks."""
    return pack(run(config, store, parts=workshop_of(store).parts, progress=False))
