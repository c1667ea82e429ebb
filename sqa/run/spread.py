"""The graph of many runs: blocks are submitted as far as workers can use them, and followed to the last one.

    for job, result in spread(scheduler, [[Job(config, finish)], ...]):
        ...

A run is planned on a worker (which loads its models), its missing blocks are chained stage by stage, and `finish` is
called on a worker when the last one is there.  Runs of one chain share work within a process (a program that is asked
for prefixes, say), so each block of one is made where the same block of the one before was.

    for place, value in each(scheduler, function, [(argument, ...), ...]):    # work that is no run: a training
        ...
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqa.core.errors import RemoteProtocolError
from sqa.files.store import Stage, Store
from sqa.run.blocks import Planned, workshop_of
from sqa.run.config import RunConfig
from sqa.run.parts import Parts
from sqa.run.scheduler import Scheduler

if TYPE_CHECKING:
    from distributed import Client, Future

PROCESSES = 2  # of `--scheduler local` without a number, where no config says how many
PER_WORKER = 8  # chains of blocks submitted ahead for each worker thread
CHAINS = 2  # chains of runs opened ahead for each worker thread
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


@dataclass(slots=True)
class _Open:
    """A job that is being worked on."""

    place: tuple[int, int]  # its chain, and where in it
    job: Job
    planned: Planned | None = None
    left: int = 0  # blocks that are not whole yet


@dataclass(slots=True)
class _Chain:
    """Jobs of one chain, opened together."""

    jobs: list[_Open]
    blocks: deque[int] = field(default_factory=deque)  # in the order in which they will be submitted


def spread(
    scheduler: Scheduler, chains: Sequence[Sequence[Job]], workers: int
) -> Iterator[tuple[tuple[int, int], Any]]:
    """((chain, place in it), what `finish` gave) of every job as it ends.  Its first error ends all."""
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    done: set[tuple[int, int]] = set()
    total = sum(map(len, chains))
    client = scheduler.client(workers)
    while len(done) < total:
        try:
            for place, result in _Graph(client, scheduler.store, chains, done).results():
                done.add(place)
                yield place, result
        except (_Lost, ClosedClientError, CommClosedError):
            client = scheduler.reopen()


def each(
    scheduler: Scheduler, function: Callable[..., Any], given: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[tuple[int, Any]]:
    """(place, value) of a function called on a worker for each of the arguments `given`, as it ends.

    A call whose worker died is made again on another, so the function goes on from what it finds.  Arguments and values
    must be small.  The first error ends all that has not begun.
    """
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    done: set[int] = set()
    client = scheduler.client(workers)
    while len(done) < len(given):
        try:
            for place, value in _called(client, function, given, done):
                done.add(place)
                yield place, value
        except (_Lost, ClosedClientError, CommClosedError):
            client = scheduler.reopen()


def _called(
    client: Client, function: Callable[..., Any], given: Sequence[tuple[Any, ...]], done: set[int]
) -> Iterator[tuple[int, Any]]:
    """What one scheduler is asked for: the calls that are not done."""
    from distributed import as_completed

    futures = {
        client.submit(_call, function, arguments, key=f"{function.__name__}-{uuid4().hex[:12]}", pure=False): place
        for place, arguments in enumerate(given)
        if place not in done
    }
    try:
        for future in as_completed(list(futures), loop=client.loop):
            yield futures[future], _value(future)
    finally:
        if client.status == "running":
            client.cancel([future for future, place in futures.items() if place not in done], force=True)


class _Lost(Exception):
    """The scheduler forgot what it was given."""


class _Graph:
    """What one scheduler is asked for."""

    def __init__(
        self, client: Client, store: Store, chains: Sequence[Sequence[Job]], done: set[tuple[int, int]]
    ) -> None:
        from distributed import as_completed

        self.client, self.store = client, store
        opened = [
            [_Open((c, j), job) for j, job in enumerate(chain) if (c, j) not in done] for c, chain in enumerate(chains)
        ]
        self.waiting = deque(_Chain(jobs) for jobs in opened if jobs)
        self.random = random.Random()  # another order than any other scheduler on the same store
        self.random.shuffle(self.waiting)
        self.open: list[_Chain] = []
        self.ends: dict[Future, list[Callable[[Any], None]]] = {}  # what is waited for -> what then
        self.made: dict[tuple[str, int], Future | None] = {}  # (stage key, block) -> on its way; None: in the store
        self.listed: set[str] = set()  # keys of stages whose blocks in the store are in `made`
        self.finished: deque[tuple[tuple[int, int], Any]] = deque()
        self.following = as_completed(loop=client.loop)  # not that of the client that was made last
        self.threads, self.counted = FEWEST, 0.0  # worker threads, and when they were counted

    def results(self) -> Iterator[tuple[tuple[int, int], Any]]:
        """Submit and follow everything."""
        try:
            self._feed()
            for future in self.following:
                value = _value(future)
                for then in self.ends.pop(future):
                    then(value)
                while self.finished:
                    yield self.finished.popleft()
                self._feed()
        finally:
            if self.ends and self.client.status == "running":
                self.client.cancel(list(self.ends), force=True)

    def _feed(self) -> None:
        """Submit as much as the workers there are can use for a while."""
        if time.monotonic() - self.counted > RECOUNT:
            self.threads = max(FEWEST, sum(self.client.nthreads().values()))
            self.counted = time.monotonic()
        while self.waiting and len(self.open) < CHAINS * self.threads:
            chain = self.waiting.popleft()
            self.open.append(chain)
            for one in chain.jobs:
                key = f"plan-{one.job.config.name}-{self.random.getrandbits(32):08x}"
                future = self.client.submit(_plan, one.job, self.store, key=key, pure=False)
                self._then(future, partial(self._planned, chain, one))
        for chain in self.open:
            while chain.blocks and len(self.ends) < PER_WORKER * self.threads:
                self._submit(chain, chain.blocks.popleft())
        self.open = [chain for chain in self.open if chain.blocks or any(one.planned is None for one in chain.jobs)]

    def _then(self, future: Future, then: Callable[[Any], None]) -> None:
        if future in self.ends:
            self.ends[future].append(then)
        else:
            self.ends[future] = [then]
            self.following.add(future)

    def _planned(self, chain: _Chain, one: _Open, planned: Planned) -> None:
        """A job's stages are known; with those of the last job of its chain its blocks can be submitted."""
        one.planned = planned
        for stage in planned.stages:
            if stage.key not in self.listed:
                self.listed.add(stage.key)
                missing = set(self.store.missing(stage, planned.blocks))
                self.made |= {(stage.key, b): None for b in range(planned.blocks) if b not in missing}
        one.left = planned.blocks
        if all(other.planned is not None for other in chain.jobs):
            chain.blocks.extend(self.random.sample(range(planned.blocks), planned.blocks))

    def _submit(self, chain: _Chain, block: int) -> None:
        """One block of every job of a chain, from its first stage that the store lacks to its last."""
        neighbour: Future | None = None
        for one in chain.jobs:
            assert one.planned is not None
            last: Future | None = None
            for stage in one.planned.stages:
                after = [future for future in (last, neighbour if stage.name == "translate" else None) if future]
                last = self._block(one.job, stage, block, after)
                neighbour = last if stage.name == "translate" and last else neighbour
            if last is None:
                self._whole(one, block, True)
            else:
                self._then(last, partial(self._whole, one, block))

    def _block(self, job: Job, stage: Stage, block: int, after: list[Future]) -> Future | None:
        """The task of one block; None where the store has it."""
        at = (stage.key, block)
        if at not in self.made:
            key = (f"{stage.name}-{stage.key[:24]}-{id(self):x}", block)  # one group: given out as workers get free
            what = (job.config, job.given, stage, block)
            self.made[at] = self.client.submit(_make, *what, self.store, after, key=key, pure=False)
        return self.made[at]

    def _whole(self, one: _Open, block: int, _: bool) -> None:
        """A block of a job is there in every stage; after the last one comes its end."""
        assert one.planned is not None
        self.made |= {(stage.key, block): None for stage in one.planned.stages}
        one.left -= 1
        if one.left == 0:
            key = f"finish-{one.job.config.name}-{self.random.getrandbits(32):08x}"
            future = self.client.submit(_finish, one.job.finish, self.store, key=key, pure=False, priority=1)
            self._then(future, partial(self._ended, one))

    def _ended(self, one: _Open, result: Any) -> None:
        self.finished.append((one.place, result))


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


def _plan(job: Job, store: Store) -> Planned:
    with _ALONE:
        return workshop_of(store).plan(job.config, job.until, job.given)


def _make(config: RunConfig, given: str | None, stage: Stage, block: int, store: Store, _after: list[Any]) -> bool:
    with _ALONE:
        return workshop_of(store).make(config, stage, block, given)


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with _ALONE:
        return function(*arguments)


def _finish(finish: Finish, store: Store) -> Any:
    with _ALONE:
        return finish(store, workshop_of(store).parts)
