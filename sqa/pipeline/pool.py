"""Run the tasks of `sqa.pipeline.runner` on worker processes on this machine.

Results go through the store, so any number of workers gives the same bytes, and a killed command resumes when it is
run again.  A worker that dies is replaced and its task repeated, at most DEATHS times.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from sqa.core.compute import QUOTA, set_for, set_threads
from sqa.core.errors import RemoteProtocolError


def end_with_parent() -> None:
    """End this process when its parent ends, even by kill -9; call it when a worker starts.

    The parent holds one end of a pipe, which the system closes when the parent ends.  Nothing happens in a process
    that `multiprocessing` did not start.  Files are written atomically, so ending at any moment does not corrupt them.
    """
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_after, args=(parent.sentinel,), name="end-with-parent", daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)  # the queue to a dead parent would block any cleaner exit


DEATHS = 3  # dead workers that a command tolerates
FIRST = 1 << 31  # bytes per worker assumed before the first measurement
# No further run is planned while this number of blocks per worker waits.  A higher limit would disturb the order of
# runs.
AHEAD = 4
UNMEASURED = 1.0  # seconds per word assumed for a group whose first block is in progress
THREADS = 4  # threads that share the weights of a large model


class Call(NamedTuple):
    """A function call for a worker process."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    result: int | None = None  # index of the value among the results; None: not a result
    then: Callable[[Any], Iterable[Call]] = lambda _: ()  # value -> the calls that follow
    words: int = 0  # source words of a block of questions; 0 = not a block
    group: str = ""  # group of blocks with equal time per word
    large: bool = False  # whether the call needs a large model, which occupies the processors of THREADS workers
    gpu: bool = False  # whether the call must run on the one worker that uses the GPU


Calls = Callable[[Collection[int]], list[Call]]  # indices of available results -> remaining calls


class Waiting:
    """The calls that wait for a worker, in priority order.

    Calls that follow another call and are not blocks come first.  Then the given calls are started, from the last,
    while fewer than AHEAD blocks wait per worker.  Blocks come last, the longest first, by their group's time per word;
    a group without a measured time comes before the others.
    """

    def __init__(self, calls: list[Call], workers: int) -> None:
        self._given, self._workers = calls, workers
        self._following: list[Call] = []
        self._blocks: dict[str, list[Call]] = {}  # by group, the longest last
        self._pace: dict[str, float] = {}  # minimum seconds per word, by group

    def __bool__(self) -> bool:
        return bool(self._given or self._following or self._blocks)

    def take(self) -> Call:
        """Remove the next call and return it."""
        if self._following:
            return self._following.pop()
        if self._given and sum(map(len, self._blocks.values())) < AHEAD * self._workers:
            return self._given.pop()
        group = max(self._blocks, key=lambda name: self._pace.get(name, math.inf) * self._blocks[name][-1].words)
        call = self._blocks[group].pop()
        self._pace.setdefault(group, UNMEASURED)
        if not self._blocks[group]:
            del self._blocks[group]
        return call

    def ended(self, call: Call, value: Any, seconds: float) -> None:
        """Record the duration of a call and add the calls that follow it."""
        if call.words:
            self._pace[call.group] = min(seconds / call.words, self._pace.get(call.group, math.inf))
        for following in call.then(value):
            if following.words:
                insort(self._blocks.setdefault(following.group, []), following, key=lambda block: block.words)
            else:
                self._following.append(following)


def in_pool(workers: int, total: int, calls: Calls) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of the `total` results as they complete, computed by at most `workers` processes."""
    done: set[int] = set()
    for deaths in range(DEATHS + 1):
        try:
            for index, value in _followed(workers, Waiting(calls(done), workers)):
                done.add(index)
                yield index, value
            return
        except BrokenProcessPool as error:
            if deaths == DEATHS:
                problem = f"{DEATHS + 1} workers died; is there enough memory? --workers 1 needs least"
                raise RemoteProtocolError(f"{problem}; run the same command again to continue") from error
            print("sqa: a worker died; other results are stored; continuing", file=sys.stderr)


def in_process(calls: Calls) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of the results, computed in this process."""
    waiting = calls(())
    while waiting:
        call = waiting.pop()
        value = call.function(*call.arguments)
        waiting += call.then(value)
        if call.result is not None:
            yield call.result, value


class Pools:
    """The processes of one attempt: the workers, and the process that holds the GPU."""

    def __init__(self, workers: int, opened: ExitStack) -> None:
        self.workers, self._opened, self._pools = workers, opened, dict[bool, ProcessPoolExecutor]()

    def submit(self, call: Call) -> Future[tuple[Any, float, int]]:
        """Submit a call to its pool, which is started if necessary."""
        if call.gpu not in self._pools:
            pool = ProcessPoolExecutor(1 if call.gpu else self.workers, get_context("spawn"), _begin)
            self._pools[call.gpu] = self._opened.enter_context(pool)
        with _without_script():
            return self._pools[call.gpu].submit(_measured, call.function, call.arguments, max(1, self.places(call)))

    def places(self, call: Call) -> int:
        """Return the number of workers whose processors a call occupies."""
        return 0 if call.gpu else max(1, min(THREADS, self.workers // 2)) if call.large else 1

    def end(self) -> None:
        """Shut the pools down without starting the pending calls."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


def _followed(workers: int, waiting: Waiting) -> Iterator[tuple[int, Any]]:
    """Yield the results of one attempt; only GPU calls are submitted before a worker is free."""
    memory, largest = available(), FIRST
    with ExitStack() as opened:
        pools = Pools(workers, opened)
        open_calls: dict[Future[tuple[Any, float, int]], Call] = {}
        following: Call | None = None
        try:
            while waiting or following or open_calls:
                while waiting or following:
                    following = following or waiting.take()
                    busy = sum(map(pools.places, open_calls.values()))
                    if busy and busy + pools.places(following) > min(workers, fitting(largest, memory)):
                        break
                    open_calls[pools.submit(following)] = following
                    following = None
                for future in wait(open_calls, return_when=FIRST_COMPLETED).done:
                    call, (value, seconds, used) = open_calls.pop(future), future.result()
                    largest = used if largest == FIRST else max(largest, used)
                    waiting.ended(call, value, seconds)
                    if call.result is not None:
                        yield call.result, value
        except BaseException:
            pools.end()
            raise


def available(memory: Path = Path("/proc/meminfo"), group: Path = QUOTA.parent) -> int | None:
    """Return the bytes of memory that this process may still use; None if the system does not report them."""
    found = []
    with suppress(OSError, ValueError, KeyError):
        fields = dict(line.split(":") for line in memory.read_text(encoding="ascii").splitlines())
        found.append(int(fields["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError, ValueError):  # "max" means no limit
        limit, used = (int((group / f"memory.{name}").read_text(encoding="ascii")) for name in ("max", "current"))
        found.append(max(0, limit - used))
    return min(found, default=None)


def fitting(worker: int, memory: int | None) -> int:
    """Return how many workers of `worker` bytes fit in three quarters of the memory, at least 1."""
    return sys.maxsize if memory is None else max(1, memory * 3 // 4 // worker)


@contextmanager
def _without_script() -> Iterator[None]:
    """Keep new workers from executing the user's script, which may have no `if __name__ == "__main__"`."""
    main = sys.modules["__main__"]
    names = {name: value for name, value in vars(main).items() if name in ("__file__", "__spec__")}
    try:
        vars(main).pop("__file__", None)
        main.__spec__ = None
        yield
    finally:
        vars(main).update(names)


def _begin() -> None:
    end_with_parent()
    set_for(())


def _measured(function: Callable[..., Any], arguments: tuple[Any, ...], threads: int) -> tuple[Any, float, int]:
    """Return a function's value, its duration in seconds, and the peak memory of this process in bytes."""
    set_threads(threads)
    start = time.perf_counter()
    value = function(*arguments)
    return value, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
