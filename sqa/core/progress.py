"""Progress on stderr (tqdm): a bar on a terminal, a line every half minute in a pipe or a log file.

A bar is drawn when work is done, and a block of translations takes minutes: a heartbeat draws it again with the time
that went by and with what is under way, so that nobody wonders whether the program still lives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any, TextIO, TypeVar

T = TypeVar("T")
_say: Callable[[str], object] | None = None
_said = 0.0  # when
BEAT, LINE = 4.0, 30.0  # seconds between two drawings on a terminal, and between two lines elsewhere
_LINE = "{desc}: {n_fmt}/{total_fmt} {unit}, {elapsed}, {remaining} to go{postfix}"


class _Lines:
    """A stream on which every drawing is a line of its own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._last = stream, ""

    def write(self, text: str) -> None:
        line = text.strip("\r\n ")
        if line and line != self._last:
            self._stream.write(f"{line}\n")
            self._last = line

    def flush(self) -> None:
        self._stream.flush()


def _settings() -> dict[str, Any]:
    """tqdm's settings for the stream it draws on."""
    if sys.stderr.isatty():
        return {"file": sys.stderr, "dynamic_ncols": True}
    return {"file": _Lines(sys.stderr), "mininterval": LINE, "maxinterval": LINE, "bar_format": _LINE}


@contextmanager
def bar(description: str, total: float, done: float = 0, unit: str = "question", **settings: Any) -> Iterator[Any]:
    """A bar with a heartbeat; `done` of `total` are done already.  `set_postfix_str` says what is under way."""
    from tqdm import tqdm

    with tqdm(desc=description, total=total, initial=done, unit=unit, **_settings() | settings) as shown:
        with beating(shown):
            yield shown


def weighed(description: str, total: float, done: float = 0.0) -> AbstractContextManager[Any]:
    """A bar of work in units of any kind, so that the time still to go knows that some steps cost more than others.

    Its postfix says what is done and under way in words.
    """
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {remaining} to go{postfix}"
    return bar(description, total, done, bar_format=form if sys.stderr.isatty() else form.replace("|{bar}|", ","))


@contextmanager
def heard(queue: Any, say: Callable[[str], object]) -> Iterator[None]:
    """Pass on what worker processes say with `report_to(queue.put)`, until the end."""

    def pass_on() -> None:
        while (text := queue.get()) is not None:
            say(text)

    listener = Thread(target=pass_on, name="heard", daemon=True)
    listener.start()
    try:
        yield
    finally:
        queue.put(None)
        listener.join()


def report_to(say: Callable[[str], object] | None) -> None:
    """Where `under_way` goes in this process: a worker's way to the bar of the process that it works for."""
    global _say
    _say = say


def under_way(text: str) -> None:
    """Say what this process works at, at most once a second; nothing where nobody asked."""
    global _said
    now = monotonic()
    if _say is not None and now - _said >= 1:
        _said = now
        _say(text)


def over(items: Iterable[T], description: str, unit: str = "it", leave: bool = True) -> Iterator[T]:
    """The items, with a bar."""
    from tqdm import tqdm

    yield from tqdm(items, desc=description, unit=unit, leave=leave, **_settings())


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
    while not stop.wait(BEAT if sys.stderr.isatty() else LINE):
        shown.refresh()
