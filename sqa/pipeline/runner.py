"""Distribute many runs over workers: a task is a block of questions, computed by all stages of a group of runs.

    for folder in run_all([config, ...], runs, workers=workers):                # sweeps, experiments, grids
        ...
    for index, result in run_jobs([Job(config, finish), ...], store, workers):    # the same with another last step
        ...

Runs with the same translator and questions form a group and share its translation.  A group is planned on a worker
(which loads the models).  Then each block that the store lacks is a task, and `finish` is called on a worker after
the last block.  The workers are processes on this machine (sqa/pipeline/pool.py), or Dask's inside
`scheduled(...)`.  Few questions are processed in this process, which is faster than starting a worker.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import current_process
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqa.core.compute import usable
from sqa.core.errors import RemoteProtocolError
from sqa.core.progress import bar
from sqa.core.registry import model_size
from sqa.core.types import ChecksTexts
from sqa.files.shared import shared
from sqa.files.store import Stage, Store, blocks_of, dataset_fingerprint, digest
from sqa.pipeline.blocks import BlockPart, Planned, Tables, joined_column, words_of, workshop_of
from sqa.pipeline.config import RunConfig, to_mapping
from sqa.pipeline.engine import BLOCK_SIZE, FEW, Work, run
from sqa.pipeline.folder import RunFolder, read
from sqa.pipeline.parts import Parts
from sqa.pipeline.pool import Call, in_pool, in_process
from sqa.pipeline.saving import pack, unpack
from sqa.pipeline.scheduler import Scheduler, current

if TYPE_CHECKING:
    from distributed import Client, Future

PARTS = 4  # maximum number of parts of a block; smaller batches are slower
NVIDIA = Path("/dev/nvidiactl")  # file that exists if there is a GPU, which `device: auto` then uses
PER_WORKER = 8  # tasks submitted ahead per worker thread
FEWEST = 4  # minimum number of worker threads assumed, because more may start
GPU = "GPU"  # Dask resource of a worker: dask worker ... --resources GPU=1
RECOUNT = 10.0  # seconds between two counts of the workers
POLL = 0.02  # seconds between two looks for a finished task

Finish = Callable[[Store, Parts], Any]
Times = Mapping[str, float]  # stage -> seconds
Shard = tuple[int, int]  # index from 0, number of shards


@dataclass(frozen=True, slots=True)
class Job:
    """A run, and a function that is called on a worker after the run's blocks are done and returns a small value."""

    config: RunConfig
    finish: Finish
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
        """Return a key that is equal for runs whose blocks are computed by one task."""
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

    progress: show a bar that counts runs.  workers: as in `run_jobs`.  beside: `Job.beside` of each config.
    """
    workshop, paths = workshop_of(Store(runs.resolve())), [runs / config.name for config in configs]
    saved = [workshop.finished(config, path) for config, path in zip(configs, paths, strict=True)]
    missing = [index for index, folder in enumerate(saved) if folder is None]
    jobs = [Job(configs[i], partial(_files, configs[i]), beside=beside[i] if beside else "") for i in missing]
    shown = bar("runs", len(configs), len(configs) - len(jobs), "run") if progress and jobs else nullcontext()
    with shown as counted:
        for index, files in run_jobs(jobs, Store(runs), workers) if jobs else ():
            unpack(files, paths[missing[index]])
            if counted is not None:
                counted.update()
    return [folder or read(path) for folder, path in zip(saved, paths, strict=True)]


def run_shard(configs: Sequence[RunConfig], runs: Path, shard: Shard, workers: int | None = None) -> bool:
    """Compute a shard's blocks of all runs; return True if the store then has every block of every run.

    Other machines may compute other shards concurrently: the store takes no locks, and each block is written
    atomically.
    """
    store = Store(*shared(str(runs)))
    planned = dict(run_jobs([Job(config, partial(_planned, config)) for config in configs], store, workers, shard))
    return not any(store.missing(stage, plan.blocks) for plan in planned.values() for stage in plan.stages)


def run_jobs(
    jobs: Sequence[Job], store: Store, workers: int | None = None, shard: Shard = (0, 1)
) -> Iterator[tuple[int, Any]]:
    """Yield (index, value of `finish`) of each job as it ends.  The first error cancels all jobs.

    workers: number of processes; None for one per processor that this process may use.  Inside `scheduled(...)` the
    scheduler's store replaces `store`.  shard: compute only this share of the blocks.
    """
    scheduler, number = current(), _processes(workers)
    store = store if scheduler is None else scheduler.store
    pooled = scheduler is None and number > 1 and sum(_size(job, store) for job in jobs) > FEW

    def calls(done: Collection[int]) -> list[Call]:
        groups: dict[str, dict[int, Job]] = {}
        for index, job in enumerate(jobs):
            if index not in done:
                groups.setdefault(job.group(), {})[index] = job
        enough = -(-4 * number // max(1, len(groups))) if pooled else 0
        planning = [_group_call(name, group, store, enough, shard) for name, group in groups.items()]
        if scheduler is not None:
            random.shuffle(planning)  # schedulers on the same store use different orders
            return planning
        sizes = {name: sum(_size(job, store) for job in group.values()) for name, group in groups.items()}
        return sorted(planning, key=lambda call: (call.large, sizes[call.group]))

    if scheduler is not None:
        return _results(scheduler, number, len(jobs), calls)
    return in_pool(number, len(jobs), calls) if pooled else in_process(calls)


def _processes(workers: int | None) -> int:
    """Return the number of worker processes; 1 in a daemonic process, which cannot start any."""
    return 1 if current_process().daemon else workers or usable()


def _size(job: Job, store: Store) -> int:
    """Return the number of questions of a job."""
    return len(store.kept(job.given)) if job.given else len(workshop_of(store).parts.questions(job.config.dataset))


def make_ahead(
    work: Work, given: bool, progress: bool, workers: int | None = None
) -> tuple[dict[str, int], dict[str, float]]:
    """Compute the missing blocks of a run on workers if they have more than FEW questions.

    Nothing is computed with one worker, or if the guesser must see all texts first.

    Args:
        work: The run.
        given: Whether its questions replace those of the data set.
        progress: Whether a bar goes to stderr.
        workers: As in `run_jobs`.

    Returns:
        The number of computed blocks by stage; and, for stages computed in full, the seconds summed over workers.
    """
    number, store, stages = _processes(workers), work.store, list(work.stages.values())
    blocks, words = blocks_of(work.questions, BLOCK_SIZE), words_of(work.questions)

    def lacking() -> list[int]:
        return sorted(set().union(*(store.missing(stage, len(blocks)) for stage in stages)))

    def questions(indices: Sequence[int]) -> int:
        return sum(len(blocks[index]) for index in indices)

    if number == 1 or questions(lacking()) <= FEW or isinstance(work.built.get("guess"), ChecksTexts):
        return {}, {}
    seconds = dict.fromkeys(work.stages, 0.0)
    with ExitStack() as opened:
        for stage in stages:
            store.describe(stage, partial(work.key_parts, stage.name))
            opened.enter_context(store.working_on(stage))
        todo, total = lacking(), len(work.questions)
        made = {stage.name: len(store.missing(stage, len(blocks))) for stage in stages}
        shown = opened.enter_context(bar("run", total, total - questions(todo), disable=not progress))
        job = Job(
            work.config,
            partial(_files, work.config),
            work.until,
            dataset_fingerprint(work.questions) if given else None,
        )
        parts = _parts(job, len(todo), 2 * number)

        def ended(block: int, took: Times) -> list[Call]:
            shown.update(len(blocks[block]))
            for name, value in took.items():
                seconds[name] += value
            return []

        def calls(_: Collection[int]) -> list[Call]:
            making = (_block_calls([job], [stages], b, words[b], parts, store, ended) for b in lacking())
            return [call for of_block in making for call in of_block]

        deque(in_pool(number, 0, calls), maxlen=0)
    return made, {name: seconds[name] for name, blocks_made in made.items() if blocks_made == len(blocks)}


def _group_call(name: str, jobs: dict[int, Job], store: Store, enough: int, shard: Shard) -> Call:
    """Return the call that plans a group of runs; calls that compute the shard's blocks and finish each run follow it.

    enough: number of blocks that keeps all workers busy; fewer blocks are split into parts.
    """
    group = tuple(jobs.values())

    def blocks(planned: tuple[list[tuple[Stage, ...]], dict[int, int]]) -> list[Call]:
        stages, missing = planned
        mine = [block for block in missing if (block + int(name[:8], 16)) % shard[1] == shard[0]]
        finishing = [Call(_finish, (job.finish, store), index) for index, job in jobs.items()]
        left = len(mine)

        def ended(_: int, __: Times) -> list[Call]:
            nonlocal left
            left -= 1
            return [] if left else finishing

        parts = _parts(group[0], left, enough)
        order = random.sample(mine, left)
        made = [_block_calls(group, stages, b, missing[b], parts, store, ended) for b in order]
        return [call for calls in made for call in calls] or finishing

    return Call(_plan, (group, store), then=blocks, group=name, large=group[0].large)


def _parts(job: Job, blocks: int, enough: int) -> int:
    """Return the number of parts per block; a large model is fast only on whole blocks."""
    return 1 if job.large or job.gpu or not blocks else max(1, min(PARTS, -(-enough // blocks)))


def _block_calls(
    jobs: Sequence[Job],
    stages: Sequence[Sequence[Stage]],
    block: int,
    words: int,
    parts: int,
    store: Store,
    ended: Callable[[int, Times], list[Call]],
) -> list[Call]:
    """Return the calls that compute a block of each job's stages; `ended` returns the calls that follow the block."""
    tables: dict[int, Tables] = {}
    seconds: dict[str, float] = {}
    call = partial(Call, words=max(1, words // parts), group=jobs[0].group(), large=jobs[0].large)

    def took(times: Times) -> list[Call]:
        for name, value in times.items():
            seconds[name] = seconds.get(name, 0.0) + value
        return ended(block, seconds)

    def translated(times: Times) -> list[Call]:
        seconds.update(times)
        return [call(_make, (jobs, [later[1:] for later in stages], block, store), then=took)]

    def joined(number: int, made: tuple[Tables, Times]) -> list[Call]:
        tables[number] = made[0]
        if len(tables) < parts:
            seconds.update({name: value + seconds.get(name, 0.0) for name, value in made[1].items()})
            return []
        for stage in {stage.key: stage for of_job in stages for stage in of_job}.values():
            if all(stage.key in tables[i] for i in range(parts)):
                columns = {name: [tables[i][stage.key][name] for i in range(parts)] for name in tables[0][stage.key]}
                store.write(stage, block, {name: joined_column(column) for name, column in columns.items()})
        return took(made[1])

    if jobs[0].gpu:
        return [call(_make, (jobs, [of_job[:1] for of_job in stages], block, store), then=translated, gpu=True)]
    if parts == 1:
        return [call(_make, (jobs, stages, block, store), then=took)]
    one = ((jobs, stages, (block, i, parts), store) for i in range(parts))
    return [call(_make_part, arguments, then=partial(joined, i)) for i, arguments in enumerate(one)]


class _Lost(Exception):
    """Raised if the scheduler lost its tasks."""


def _results(
    scheduler: Scheduler, workers: int, total: int, calls: Callable[[Collection[int]], list[Call]]
) -> Iterator[tuple[int, Any]]:
    """Yield the `total` results, computed by a scheduler or its replacement; `calls(done)` returns the calls left."""
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    done: set[int] = set()
    client = scheduler.client(workers)
    while len(done) < total:
        try:
            for index, value in _followed(client, calls(done), scheduler.renew):
                done.add(index)
                yield index, value
        except (_Lost, ClosedClientError, CommClosedError):
            client = scheduler.reopen()


def _followed(
    client: Client, waiting: list[Call], renew: Callable[[int, Sequence[str]], None]
) -> Iterator[tuple[int, Any]]:
    """Yield the results of calls, which are submitted to a scheduler as workers become free, the last call first.

    `renew` is called with the number of finished calls and the names of the others while no result is ready.
    """
    from distributed import as_completed

    name, number = uuid4().hex[:12], count()
    open_calls: dict[Future, Call] = {}
    following = as_completed(loop=client.loop)  # the default is the loop of the newest client
    threads, counted = FEWEST, -math.inf  # worker threads, and the time at which they were counted
    finished = 0
    no_gpu: list[str] = []  # workers without the GPU resource, preferred for other tasks
    try:
        while waiting or open_calls:
            if time.monotonic() - counted > RECOUNT:
                workers = client.scheduler_info(n_workers=-1)["workers"]
                threads, counted = max(FEWEST, sum(w["nthreads"] for w in workers.values())), time.monotonic()
                no_gpu = [address for address, worker in workers.items() if GPU not in worker["resources"]]
            while waiting and len(open_calls) < PER_WORKER * threads:
                call = waiting.pop()
                # Dask assigns tasks whose keys form one group as workers become free
                key = (f"{call.function.__name__}-{name}", next(number))
                where: dict[str, Any] = {"workers": no_gpu, "allow_other_workers": True} if no_gpu else {}
                where = {"resources": {GPU: 1}} if call.gpu else where
                future = client.submit(_alone, call.function, call.arguments, key=key, pure=False, **where)
                open_calls[future] = call
                following.add(future)
            while not following.has_ready():
                renew(finished, [_named(call) for call in open_calls.values()])
                time.sleep(POLL)
            future, finished = next(following), finished + 1
            call, value = open_calls.pop(future), _value(future)
            waiting += call.then(value)
            if call.result is not None:
                yield call.result, value
    finally:
        if open_calls and client.status == "running":
            client.cancel(list(open_calls), force=True)


def _named(call: Call) -> str:
    """Return the runs and the block of a call, for messages."""
    texts = []
    for argument in call.arguments:
        if isinstance(argument, (list, tuple)) and argument and isinstance(argument[0], Job):
            texts += [job.config.name for job in argument[:1]]
        elif isinstance(argument, int) or (isinstance(argument, tuple) and argument and isinstance(argument[0], int)):
            texts.append(f"block {argument if isinstance(argument, int) else argument[0]}")
    return " ".join(texts) or call.function.__name__


def _value(future: Future) -> Any:
    """Return the value of a task; raises the task's error or `_Lost`."""
    from distributed.scheduler import KilledWorker

    if future.status in ("cancelled", "lost"):
        raise _Lost
    try:
        return future.result()
    except KilledWorker as error:
        raise RemoteProtocolError(f"{future.key}: every worker that tried it died; is there enough memory?") from error
    except CancelledError as error:
        raise _Lost from error


# ------------------------------------------------------------------------------------------------ tasks of workers

_ALONE = Lock()  # one task at a time per worker, even with several threads: models are not thread-safe


def _alone(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with _ALONE:
        return function(*arguments)


def _files(config: RunConfig, store: Store, parts: Parts) -> dict[str, bytes]:
    """Return the files of a run's folder, on a worker whose store has all blocks."""
    return pack(run(config, store, parts=parts, progress=False))


def _planned(config: RunConfig, store: Store, _: Parts) -> Planned:
    """Return the plan of a run, on a worker."""
    return workshop_of(store).plan(config)


def _plan(jobs: Sequence[Job], store: Store) -> tuple[list[tuple[Stage, ...]], dict[int, int]]:
    """Return the stages of each run, and the size in words of each block that the store lacks for any of the runs."""
    plans = [workshop_of(store).plan(job.config, job.until, job.given) for job in jobs]
    lacking = (store.missing(stage, planned.blocks) for planned in plans for stage in planned.stages)
    return [planned.stages for planned in plans], {b: plans[0].words[b] for b in sorted(set().union(*lacking))}


def _make(jobs: Sequence[Job], stages: Sequence[Sequence[Stage]], block: int, store: Store) -> dict[str, float]:
    """Compute one block of the stages of each run; return the seconds of each stage that the store lacked."""
    seconds: dict[str, float] = {}
    for job, of_job in zip(jobs, stages, strict=True):
        for stage in of_job:
            start = time.perf_counter()
            if workshop_of(store).make(job.config, stage, block, job.given, job.until):
                seconds[stage.name] = seconds.get(stage.name, 0.0) + time.perf_counter() - start
    return seconds


def _make_part(
    jobs: Sequence[Job], stages: Sequence[Sequence[Stage]], part: BlockPart, store: Store
) -> tuple[Tables, Times]:
    """Return the tables of a part of a block by stage key, and the seconds of each stage."""
    tables: Tables = {}
    seconds: dict[str, float] = {}
    for job, of_job in zip(jobs, stages, strict=True):
        times = workshop_of(store).part(job.config, of_job, part, job.given, job.until, tables)
        seconds.update({name: value + seconds.get(name, 0.0) for name, value in times.items()})
    return tables, seconds


def _finish(finish: Finish, store: Store) -> Any:
    return finish(store, workshop_of(store).parts)
