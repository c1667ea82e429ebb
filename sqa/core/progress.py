"""Progress on stderr (tqdm): a bar on a terminal, a line every half minute in a pipe or a log file.

A block of translations takes minutes, so a heartbeat redraws the bar meanwhile, with the time so far and the current
work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any, TextIO

_report: Callable[[str], object] | None = None
_reported = 0.0  # time of the last report
BEAT, LINE = 4.0, 30.0  # seconds between two drawings on a terminal, and between two lines elsewhere
_LINE = "{desc}: {n_fmt}/{total_fmt} {unit}, {elapsed}, {remaining} to go{postfix}"


class _Lines:
    """A stream on which every drawing is a separate line."""

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
    """A bar with a heartbeat; `done` of `total` are done already.  `set_postfix_str` shows the current work."""
    from tqdm import tqdm

    stop = Event()
    with tqdm(desc=description, total=total, initial=done, unit=unit, **_settings() | settings) as shown:
        beat = Thread(target=_beat, args=(shown, stop), name="progress", daemon=True)
        beat.start()
        try:
            yield shown
        finally:
            stop.set()
            beat.join()


def weighed(description: str, total: float) -> AbstractContextManager[Any]:
    """A bar over costs in any unit, so that the estimated time takes account of steps that cost more than others.

    Its postfix describes the progress in words.
    """
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {remaining} to go{postfix}"
    return bar(description, total, bar_format=form if sys.stderr.isatty() else form.replace("|{bar}|", ","))


def report_to(report: Callable[[str], object] | None) -> None:
    """Set where `under_way` goes in this process: in a worker, to the bar of the process that it works for."""
    global _report
    _report = report


def under_way(text: str) -> None:
    """Report the current work of this process, at most once a second, to the target of `report_to` if there is one."""
    global _reported
    now = monotonic()
    if _report is not None and now - _reported >= 1:
        _reported = now
        _report(text)


def _beat(shown: Any, stop: Event) -> None:
    while not stop.wait(BEAT if sys.stderr.isatty() else LINE):
        shown.refresh()
