"""Progress bars that move while something long is under way.

A bar is drawn when work is done; a block of translations or a run takes minutes.  A heartbeat draws it again with the
time that went by, so that nobody wonders whether the program still lives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

SECONDS = 4.0  # between two beats, at most 5


@contextmanager
def bar(description: str, total: int, done: int = 0, unit: str = "question") -> Iterator[Any]:
    """A progress bar of the package tqdm on stderr with a heartbeat; `done` of `total` are done already."""
    from tqdm import tqdm

    with tqdm(
        desc=description, total=total, initial=done, unit=unit, file=sys.stderr, dynamic_ncols=True
    ) as shown, beating(shown):  # fmt: skip
        yield shown


@contextmanager
def beating(shown: Any) -> Iterator[None]:
    """A heartbeat for a bar of one's own."""
    stop = Event()
    beat = Thread(target=_beat, args=(shown, stop), name="progress", daemon=True)
    beat.start()
    try:
        yield
    finally:
        stop.set()
        beat.join()


def _beat(shown: Any, stop: Event) -> None:
    while not stop.wait(SECONDS):
        shown.refresh()
