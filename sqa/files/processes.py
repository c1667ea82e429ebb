"""Worker processes: they end with the process that they work for, and it shows what they report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any


def end_with_parent() -> None:
    """Called at a worker's start: end this process when its parent ends, even by kill -9.

    The parent holds one end of a pipe, which the system closes with it.  Without a parent of `multiprocessing` nothing
    happens.  Files are written whole or not at all, so an end at any moment corrupts none.
    """
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_after, args=(parent.sentinel,), name="end-with-parent", daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # the queue to a dead parent would block every tidier end


@contextmanager
def relayed(queue: Any, show: Callable[[str], object]) -> Iterator[None]:
    """Within this context, show the reports of workers that called `report_to(queue.put)` of sqa.core.progress."""

    def relay() -> None:
        while (text := queue.get()) is not None:
            show(text)

    thread = Thread(target=relay, name="relay", daemon=True)
    thread.start()
    try:
        yield
    finally:
        queue.put(None)
        thread.join()
