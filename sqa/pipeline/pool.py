"""Worker processes of this machine for the tasks of `sqa.pipeline.spread`.

Results go through the store, so the same bytes come from any number of workers, and a command that was killed goes on
where it stopped.  A worker that dies is replaced and its task repeated, at most DEATHS times.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from sqa.core.compute import set_for
from sqa.core.errors import RemoteProtocolError
from sqa.files.processes import end_with_parent

DEATHS = 3  # workers that may die before the command gives up
FIRST = 1 << 31  # bytes assumed of a worker before one was measured
MEMORY = Path("/proc/meminfo")


class Call(NamedTuple):
    """A task for a worker."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    result: int | None = None  # index of its value among the results; None: the value is not a result
    then: Callable[[Any], Iterable[Call]] = lambda _: ()  # value -> the calls that follow


Calls = Callable[[Collection[int]], list[Call]]  # indices of the results that are there -> the remaining calls


def in_pool(workers: int, total: int, calls: Calls) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of the `total` results of calls, as they are made by at most `workers` processes."""
    done: set[int] = set()
    for deaths in range(DEATHS + 1):
        try:
            for index, value in _followed(workers, calls(done)):
                done.add(index)
                yield index, value
            return
        except BrokenProcessPool as error:
            if deaths == DEATHS:
                problem = f"{DEATHS + 1} workers died; is there enough memory? --workers 1 needs the least"
                raise RemoteProtocolError(f"{problem}; run the same command again, it goes on") from error
            print("sqa: a worker died; the others' results are kept, going on", file=sys.stderr)


def in_process(calls: Calls) -> Iterator[tuple[int, Any]]:
    """Yield (index, value) of the results of calls that are made in this process."""
    waiting = calls(())
    while waiting:
        call = waiting.pop()
        value = call.function(*call.arguments)
        waiting += call.then(value)
        if call.result is not None:
            yield call.result, value


def _followed(workers: int, waiting: list[Call]) -> Iterator[tuple[int, Any]]:
    """Yield the results of one pool; the last call is submitted first, and no call waits inside the pool."""
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin) as pool:
        open_calls: dict[Future[tuple[Any, int]], Call] = {}
        largest = FIRST
        try:
            while waiting or open_calls:
                while waiting and len(open_calls) < min(workers, fitting(largest)):
                    call = waiting.pop()
                    open_calls[pool.submit(_measured, call.function, call.arguments)] = call
                for future in wait(open_calls, return_when=FIRST_COMPLETED).done:
                    call, (value, used) = open_calls.pop(future), future.result()
                    largest = used if largest == FIRST else max(largest, used)
                    waiting += call.then(value)
                    if call.result is not None:
                        yield call.result, value
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def fitting(worker: int, file: Path = MEMORY) -> int:
    """Return how many workers of so many bytes this machine's memory holds, at least 1."""
    try:
        fields = dict(line.split(":") for line in file.read_text(encoding="ascii").splitlines())
        return max(1, int(fields["MemTotal"].split()[0]) * 1024 * 3 // 4 // worker)
    except (OSError, ValueError, KeyError):
        return sys.maxsize


def _begin() -> None:
    end_with_parent()
    set_for(())


def _measured(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, int]:
    """Return a function's value and the largest memory of this process so far, in bytes."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    value = function(*arguments)
    return value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
