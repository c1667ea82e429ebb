"""Many runs on workers: a task is a block of questions, made by all stages of the runs that go together.

    for place, result in spread(scheduler, [Job(config, finish), ...], workers):
        ...

Runs of one translator on the same questions go together, and share its translation.  They are planned on a worker
(which loads their models), then each block that the store lacks is one task, and `finish` is called on a worker when
the last one is there.

    for place, value in each(scheduler, function, [(argument, ...), ...], workers):    # work that is no run: a training
        ...
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from sqa.core.errors import RemoteProtocolError
from sqa.files.store import Store, digest
from sqa.run.blocks import Planned, workshop_of
from sqa.run.config import RunConfig, to_mapping
from sqa.run.parts import Parts
from sqa.run.scheduler import Scheduler

if TYPE_CHECKING:
    from distributed import Client, Future

PROCESSES = 2  # of `--scheduler local` without a number, where no config says how many
PER_WORKER = 8  # tasks submitted ahead for each worker thread
FEWEST = 4  # worker threads reckoned with, as more may come
RECOUNT = 10.0  # seconds after which the workers are counted again

Finish = Callable[[Store, Parts], Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A run to be made, and what is called on a worker when its blocks are there; its value must be small."""

    config: RunConfig
    finish: Finish
    until: str = "score"
    given: str | None = None  # questions in the store (`Store.keep`), in place of those of config.dataset
    beside: str = ""  # runs of one name share work within a process (prefixes that a program has translated)

    def together(self) -> str:
        """What the runs have in common whose blocks are made by one task."""
        shared = self.beside or to_mapping(self.config.translator)
        return digest([to_mapping(self.config.dataset), self.given, shared])


class _Call(NamedTuple):
    """What a worker is asked for."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    place: int | None = None  # of the result that its value is; None: it is none
    then: Callable[[Any], Iterable[_Call]] = lambda _: ()  # the calls that its value brings


def spread(scheduler: Scheduler, jobs: Sequence[Job], workers: int) -> Iterator[tuple[int, Any]]:
    """(place, what `finish` gave) of every job as it ends.  The first error ends all."""

    def calls(done: Collection[int]) -> list[_Call]:
        groups: dict[str, list[int]] = {}
        for place, job in enumerate(jobs):
            if place not in done:
                groups.setdefault(job.together(), []).append(place)
        planning = [_made({place: jobs[place] for place in places}, scheduler.store) for places in groups.values()]
        random.shuffle(planning)  # another order than any other scheduler on the same store
        return planning

    return _served(scheduler, workers, len(jobs), calls)


def each(
    scheduler: Scheduler, function: Callable[..., Any], given: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[tuple[int, Any]]:
    """(place, value) of a function called on a worker for each of the arguments `given`, as it ends.

    A call whose worker died is made again on another, so the function goes on from what it finds.  Arguments and values
    must be small.  The first error ends all that has not begun.
    """

    def calls(done: Collection[int]) -> list[_Call]:
        wanted = [_Call(function, arguments, place) for place, arguments in enumerate(given) if place not in done]
        return wanted[::-1]

    return _served(scheduler, workers, len(given), calls)


def _made(jobs: dict[int, Job], store: Store) -> _Call:
    """Runs that go together: they are planned, then their blocks are made, then each is finished."""
    several = tuple(jobs.values())

    def blocks(found: tuple[list[Planned], list[int]]) -> list[_Call]:
        plans, missing = found
        finishing = [_Call(_finish, (job.finish, store), place) for place, job in jobs.items()]
        left = len(missing)

        def ended(_: None) -> list[_Call]:
            nonlocal left
            left -= 1
            return [] if left else finishing

        order = random.sample(missing, left)
        return [_Call(_make, (several, plans, block, store), then=ended) for block in order] or finishing

    return _Call(_plan, (several, store), then=blocks)


class _Lost(Exception):
    """The scheduler forgot what it was given."""


def _served(
    scheduler: Scheduler, workers: int, total: int, calls: Callable[[Collection[int]], list[_Call]]
) -> Iterator[tuple[int, Any]]:
    """The `total` results of calls, by a scheduler or one in its place; `calls(done)` are those still wanted."""
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    done: set[int] = set()
    client = scheduler.client(workers)
    while len(done) < total:
        try:
            for place, value in _followed(client, calls(done)):
                done.add(place)
                yield place, value
        except (_Lost, ClosedClientError, CommClosedError):
            client = scheduler.reopen()


def _followed(client: Client, waiting: list[_Call]) -> Iterator[tuple[int, Any]]:
    """What one scheduler is asked for: as much at a time as its workers can use for a while, the last call first."""
    from distributed import as_completed

    name, number = uuid4().hex[:12], count()
    open_calls: dict[Future, _Call] = {}
    following = as_completed(loop=client.loop)  # not that of the client that was made last
    threads, counted = FEWEST, -math.inf  # worker threads, and when they were counted
    try:
        while waiting or open_calls:
            if time.monotonic() - counted > RECOUNT:
                threads, counted = max(FEWEST, sum(client.nthreads().values())), time.monotonic()
            while waiting and len(open_calls) < PER_WORKER * threads:
                call = waiting.pop()
                key = (f"{call.function.__name__}-{name}", next(number))  # one group: given out as workers get free
                future = client.submit(_alone, call.function, call.arguments, key=key, pure=False)
                open_calls[future] = call
                following.add(future)
            future = next(following)
            call, value = open_calls.pop(future), _value(future)
            waiting += call.then(value)
            if call.place is not None:
                yield call.place, value
    finally:
        if open_calls and client.status == "running":
            client.cancel(list(open_calls), force=True)


def _value(future: Future) -> Any:
    """What a task gave; its error, or `_Lost`."""
    from distributed.scheduler import KilledWorker

    if future.status in ("cancelled", "lost"):
        raise _Lost
    try:
        return future.result()
    except KilledWorker as error:
        raise RemoteProtocolError(f"{future.key}: every worker that tried it died; is its memory enough?") from error
    except CancelledError as error:
        raise _Lost from error


# ------------------------------------------------------------------------------------------- what the workers do

_ALONE = Lock()  # a worker with several threads works on one task at a time: models are not made for more


def _alone(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with _ALONE:
        return function(*arguments)


def _plan(jobs: Sequence[Job], store: Store) -> tuple[list[Planned], list[int]]:
    """The plans of runs that go together, and the blocks that the store lacks of a stage of one of them."""
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
