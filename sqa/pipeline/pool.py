"""Execute calls on worker processes of this machine, or on any other executor (sqa/pipeline/scheduler.py).

Results go through the store, so any number of workers gives the same bytes, and a killed command resumes when it is
run again.  A worker that dies is replaced and its call repeated, at most DEATHS times.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Protocol

from sqa.core import RemoteProtocolError, set_for
from sqa.core.process import QUOTA, set_threads

DEATHS = 3  # dead workers that a command tolerates
FIRST = 1 << 31  # bytes per worker assumed before the first measurement
AHEAD = 4  # blocks per worker that wait before those of a further group join them, so that few models are loaded
UNMEASURED = 1.0  # seconds per word assumed for a group whose first block is in progress
THREADS = 4  # threads that share the weights of a large model


class Call(NamedTuple):
    """A function call for a worker."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    result: int | None = None  # index of the value among the results; None: not a result
    then: Callable[[], list[Call]] = list  # returns the calls that follow
    words: int = 0  # source words of a block of questions; 0 = the call precedes all others
    group: str = ""  # group of blocks with equal time per word
    large: bool = False  # whether the call needs a large model, which occupies the processors of THREADS workers
    gpu: bool = False  # whether the call must run on a worker that uses the GPU
    title: str = ""  # for messages


Measured = tuple[Any, float, int]  # value, seconds, peak memory in bytes of the process
Groups = Callable[[Collection[int]], Iterable[list[Call]]]  # indices of available results -> remaining calls, by group
Running = dict["Future[Measured]", Call]


class Waiting:
    """The calls that wait for a worker: the longest first, by their group's time per word.

    Calls of a group without a measured time come before the others.  Calls that are not blocks come first of all, and
    those of the first group too, so that the first result comes early.
    """

    def __init__(self, groups: Iterable[list[Call]], workers: int) -> None:
        self._groups, self._least = deque(groups), AHEAD * workers
        self._first = next((call.group for group in self._groups for call in group), "") or None
        self._ready: list[Call] = []
        self._pace: dict[str, float] = {}  # minimum seconds per word, by group

    def take(self) -> Call | None:
        """Remove the next call and return it; None if no call waits."""
        while self._groups and len(self._ready) < self._least:
            self._ready += self._groups.popleft()
        if not self._ready:
            return None
        index = max(range(len(self._ready)), key=lambda i: self._seconds(self._ready[i]))
        call = self._ready.pop(index)
        self._pace.setdefault(call.group, UNMEASURED)
        return call

    def _seconds(self, call: Call) -> float:
        """Return the expected duration of a call; infinite if the call precedes others."""
        if not call.words or call.group == self._first:
            return math.inf
        return self._pace.get(call.group, math.inf) * call.words

    def ended(self, call: Call, seconds: float) -> None:
        """Record the duration of a call and add the calls that follow it."""
        if call.words:
            self._pace[call.group] = min(seconds / call.words, self._pace.get(call.group, math.inf))
        self._ready[:0] = call.then()


class Pool(Protocol):
    """Workers that execute calls."""

    workers: int  # number of workers

    def has_room(self, call: Call, running: Collection[Call]) -> bool:
        """Return whether the call may be submitted while the others are running; True if none is running."""

    def submit(self, call: Call) -> Future[Measured]:
        """Start a call on a worker."""

    def wait(self, running: Running) -> Collection[Future[Measured]]:
        """Return the calls that have ended, at least one."""

    def replaces(self, error: Exception) -> bool:
        """Replace lost workers, and return whether their loss caused the error; raises the error to report."""

    def stop(self, running: Running) -> None:
        """Cancel the calls that have not started."""


def results(pool: Pool, groups: Groups) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of the results as they complete; the calls of lost workers are repeated."""
    done: set[int] = set()
    while True:
        try:
            for index, value in _followed(pool, Waiting(groups(done), pool.workers)):
                done.add(index)
                yield index, value
            return
        except Exception as error:
            if not pool.replaces(error):
                raise


def _followed(pool: Pool, waiting: Waiting) -> Iterator[tuple[int, Any]]:
    running: Running = {}
    call = None
    try:
        while (call := call or waiting.take()) or running:
            if call and pool.has_room(call, running.values()):
                running[pool.submit(call)], call = call, None
                continue
            for future in pool.wait(running):
                ended, (value, seconds, _) = running.pop(future), future.result()
                waiting.ended(ended, seconds)
                if ended.result is not None:
                    yield ended.result, value
    finally:
        pool.stop(running)


def in_process(groups: Groups) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of the results, computed in this process."""
    waiting = Waiting(groups(()), 1)
    while call := waiting.take():
        value = call.function(*call.arguments)
        waiting.ended(call, 0.0)
        if call.result is not None:
            yield call.result, value


class Processes(Pool):
    """Worker processes, and one process that holds the GPU."""

    def __init__(self, workers: int) -> None:
        self.workers, self._pools = workers, dict[bool, ProcessPoolExecutor]()
        self._memory, self._largest, self._deaths = available(), FIRST, 0

    def has_room(self, call: Call, running: Collection[Call]) -> bool:
        busy = sum(map(self._places, running))
        return not busy or busy + self._places(call) <= min(self.workers, fitting(self._largest, self._memory))

    def _places(self, call: Call) -> int:
        """Return the number of workers whose processors a call occupies."""
        return 0 if call.gpu else max(1, min(THREADS, self.workers // 2)) if call.large else 1

    def submit(self, call: Call) -> Future[Measured]:
        if call.gpu not in self._pools:
            self._pools[call.gpu] = ProcessPoolExecutor(1 if call.gpu else self.workers, get_context("spawn"), _begin)
        with _without_script():
            return self._pools[call.gpu].submit(_measured, call.function, call.arguments, max(1, self._places(call)))

    def wait(self, running: Running) -> Collection[Future[Measured]]:
        done = wait(running, return_when=FIRST_COMPLETED).done
        for used in (future.result()[2] for future in done if future.exception() is None):
            self._largest = used if self._largest == FIRST else max(self._largest, used)
        return done

    def replaces(self, error: Exception) -> bool:
        if not isinstance(error, BrokenProcessPool):
            return False
        self._deaths += 1
        if self._deaths > DEATHS:
            problem = f"{self._deaths} workers died; is there enough memory? --workers 1 needs least"
            raise RemoteProtocolError(f"{problem}; run the same command again to continue") from error
        print("sqa: a worker died; other results are stored; continuing", file=sys.stderr)
        return True

    def stop(self, running: Running) -> None:
        while self._pools:
            self._pools.popitem()[1].shutdown(cancel_futures=True)


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


def _measured(function: Callable[..., Any], arguments: tuple[Any, ...], threads: int) -> Measured:
    """Return a function's value, its duration in seconds, and the peak memory of this process in bytes."""
    set_threads(threads)
    start = time.perf_counter()
    value = function(*arguments)
    with suppress(OSError, AttributeError):  # returns freed memory to the system; only glibc has this function
        ctypes.CDLL(None).malloc_trim(0)
    return value, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
