"""Many runs on workers: a task is a block of questions, made by all stages of the runs that go together.

    for folder in run_all([config, ...], runs, workers=workers):                # sweeps, experiments, grids
        ...
    for index, result in spread([Job(config, finish), ...], store, workers):    # the same with any last step
        ...

Runs of one translator on the same questions form a group, and share its translation.  They are planned on a worker
(which loads their models), then each block that the store lacks is one task, and `finish` is called on a worker after
the last block.  The workers are processes of this machine (sqa/pipeline/pool.py); inside `scheduled(...)` they are
Dask's.  Few questions stay in this process, since starting a worker takes longer than they do.

    for index, value in each(scheduler, function, [(argument, ...), ...], workers):    # work that is no run: a training
        ...
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqa.core.compute import usable
from sqa.core.errors import RemoteProtocolError
from sqa.core.progress import bar
from sqa.files.store import Store, digest
from sqa.pipeline.blocks import Planned, workshop_of
from sqa.pipeline.config import RunConfig, to_mapping
from sqa.pipeline.engine import run
from sqa.pipeline.folder import RunFolder, read
from sqa.pipeline.parts import Parts
from sqa.pipeline.pool import Call, in_pool, in_process
from sqa.pipeline.saving import pack, unpack
from sqa.pipeline.scheduler import Scheduler, current

if TYPE_CHECKING:
    from distributed import Client, Future

FEW = 200  # questions, summed over runs, that are not worth the start of workers
PER_WORKER = 8  # tasks submitted ahead for each worker thread
FEWEST = 4  # worker threads assumed at least, because more may start
RECOUNT = 10.0  # seconds after which the workers are counted again

Finish = Callable[[Store, Parts], Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A run, and what is called on a worker when its blocks are made; its value must be small."""

    config: RunConfig
    finish: Finish
    until: str = "score"
    given: str | None = None  # questions in the store (`Store.keep`), instead of those of config.dataset
    beside: str = ""  # runs of the same name share work within a process (prefixes that a program has translated)

    def group(self) -> str:
        """Equal for runs whose blocks are made by one task."""
        shared = self.beside or to_mapping(self.config.translator)
        return digest([to_mapping(self.config.dataset), self.given, shared])


def run_all(
    configs: Sequence[RunConfig],
    runs: Path,
    progress: bool = True,
    workers: int | None = None,
    beside: Sequence[str] = (),
) -> list[RunFolder]:
    """Run each config, write its folder, and return the folders in order; finished runs are read back.

    progress: show one bar that counts runs.  workers: as in `spread`.  beside: of each config, as in `Job`.
    """
    workshop, paths = workshop_of(Store(runs.resolve())), [runs / config.name for config in configs]
    saved = [workshop.finished(config, path) for config, path in zip(configs, paths, strict=True)]
    missing = [index for index, folder in enumerate(saved) if folder is None]
    jobs = [Job(configs[i], partial(_files, configs[i]), beside=beside[i] if beside else "") for i in missing]
    shown = bar("runs", len(configs), len(configs) - len(jobs), "run") if progress and jobs else nullcontext()
    with shown as counted:
        for index, files in spread(jobs, Store(runs), workers) if jobs else ():
            unpack(files, paths[missing[index]])
            if counted is not None:
                counted.update()
    return [folder or read(path) for folder, path in zip(saved, paths, strict=True)]


def spread(jobs: Sequence[Job], store: Store, workers: int | None = None) -> Iterator[tuple[int, Any]]:
    """Yield (index, value of `finish`) of every job as it ends.  The first error ends all.

    workers: processes, None for one for each processor that this process may use.  Inside `scheduled(...)` the
    scheduler's store replaces `store`.
    """
    scheduler, number = current(), workers or usable()
    store = store if scheduler is None else scheduler.store

    def calls(done: Collection[int]) -> list[Call]:
        groups: dict[str, list[int]] = {}
        for index, job in enumerate(jobs):
            if index not in done:
                groups.setdefault(job.group(), []).append(index)
        planning = [_group_call({index: jobs[index] for index in group}, store) for group in groups.values()]
        if scheduler is not None:
            random.shuffle(planning)  # schedulers on the same store take different orders
        return planning[::-1]

    if scheduler is not None:
        return _results(scheduler, number, len(jobs), calls)
    if number == 1 or sum(_size(job, store) for job in jobs) <= FEW:
        return in_process(calls)
    return in_pool(number, len(jobs), calls)


def _size(job: Job, store: Store) -> int:
    """Return the number of questions of a job."""
    return len(store.kept(job.given)) if job.given else len(workshop_of(store).parts.questions(job.config.dataset))


def each(
    scheduler: Scheduler, function: Callable[..., Any], given: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[tuple[int, Any]]:
    """(index, value) of a function called on a worker for each of the arguments `given`, as it ends.

    A call whose worker died is repeated on another, so the function must continue from files that it finds.  Arguments
    and values must be small.  The first error cancels all calls that have not begun.
    """

    def calls(done: Collection[int]) -> list[Call]:
        wanted = [Call(function, arguments, index) for index, arguments in enumerate(given) if index not in done]
        return wanted[::-1]

    return _results(scheduler, workers, len(given), calls)


def _group_call(jobs: dict[int, Job], store: Store) -> Call:
    """The runs of a group: they are planned, then their blocks are made, then each is finished."""
    group = tuple(jobs.values())

    def blocks(planned: tuple[list[Planned], list[int]]) -> list[Call]:
        plans, missing = planned
        finishing = [Call(_finish, (job.finish, store), index) for index, job in jobs.items()]
        left = len(missing)

        def ended(_: None) -> list[Call]:
            nonlocal left
            left -= 1
            return [] if left else finishing

        order = random.sample(missing, left)
        return [Call(_make, (group, plans, block, store), then=ended) for block in order] or finishing

    return Call(_plan, (group, store), then=blocks)


class _Lost(Exception):
    """The scheduler lost its tasks."""


def _results(
    scheduler: Scheduler, workers: int, total: int, calls: Callable[[Collection[int]], list[Call]]
) -> Iterator[tuple[int, Any]]:
    """The `total` results of calls, by a scheduler or its replacement; `calls(done)` are the remaining calls."""
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    done: set[int] = set()
    client = scheduler.client(workers)
    while len(done) < total:
        try:
            for index, value in _followed(client, calls(done)):
                done.add(index)
                yield index, value
        except (_Lost, ClosedClientError, CommClosedError):
            client = scheduler.reopen()


def _followed(client: Client, waiting: list[Call]) -> Iterator[tuple[int, Any]]:
    """The results of calls by one scheduler, submitted as its workers get free, the last call first."""
    from distributed import as_completed

    name, number = uuid4().hex[:12], count()
    open_calls: dict[Future, Call] = {}
    following = as_completed(loop=client.loop)  # by default the loop of the newest client
    threads, counted = FEWEST, -math.inf  # worker threads, and when they were counted
    try:
        while waiting or open_calls:
            if time.monotonic() - counted > RECOUNT:
                threads, counted = max(FEWEST, sum(client.nthreads().values())), time.monotonic()
            while waiting and len(open_calls) < PER_WORKER * threads:
                call = waiting.pop()
                key = (f"{call.function.__name__}-{name}", next(number))  # one group: assigned as workers get free
                future = client.submit(_alone, call.function, call.arguments, key=key, pure=False)
                open_calls[future] = call
                following.add(future)
            future = next(following)
            call, value = open_calls.pop(future), _value(future)
            waiting += call.then(value)
            if call.result is not None:
                yield call.result, value
    finally:
        if open_calls and client.status == "running":
            client.cancel(list(open_calls), force=True)


def _value(future: Future) -> Any:
    """The value of a task; raises its error, or `_Lost`."""
    from distributed.scheduler import KilledWorker

    if future.status in ("cancelled", "lost"):
        raise _Lost
    try:
        return future.result()
    except KilledWorker as error:
        raise RemoteProtocolError(f"{future.key}: every worker that tried it died; is its memory enough?") from error
    except CancelledError as error:
        raise _Lost from error


# ------------------------------------------------------------------------------------------------ tasks of workers

_ALONE = Lock()  # a worker with several threads works on one task at a time: models are not thread-safe


def _alone(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with _ALONE:
        return function(*arguments)


def _files(config: RunConfig, store: Store, parts: Parts) -> dict[str, bytes]:
    """Return the files of a run's folder, on a worker that has all its blocks in the store."""
    return pack(run(config, store, parts=parts, progress=False))


def _plan(jobs: Sequence[Job], store: Store) -> tuple[list[Planned], list[int]]:
    """The plans of a group of runs, and the blocks that the store lacks of any of their stages."""
    plans = [workshop_of(store).plan(job.config, job.until, job.given) for job in jobs]
    lacking = (store.missing(stage, planned.blocks) for planned in plans for stage in planned.stages)
    return plans, sorted(set().union(*lacking))


def _make(jobs: Sequence[Job], plans: Sequence[Planned], block: int, store: Store) -> None:
    """One block of every stage of each run."""
    for job, planned in zip(jobs, plans, strict=True):
        for stage in planned.stages:
            workshop_of(store).make(job.config, stage, block, job.given, job.until)


def _finish(finish: Finish, store: Store) -> Any:
    return finish(store, workshop_of(store).parts)
