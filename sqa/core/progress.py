"""Progress on stderr (tqdm): a bar on a terminal, a line every half minute in a pipe or a log file.

A block of translations takes minutes, so a heartbeat thread redraws the bar with the elapsed time in the meantime.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, TextIO

BEAT, LINE = 4.0, 30.0  # seconds between updates on a terminal, and elsewhere
_LINE = "{desc}: {n_fmt}/{total_fmt} {unit}, {elapsed}, {remaining} to go{postfix}"


class _Lines:
    """A stream that shows every update of a bar as a separate line."""

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
    """Return tqdm's settings for stderr."""
    if sys.stderr.isatty():
        return {"file": sys.stderr, "dynamic_ncols": True}
    return {"file": _Lines(sys.stderr), "mininterval": LINE, "maxinterval": LINE, "bar_format": _LINE}


@contextmanager
def bar(description: str, total: float, done: float = 0, unit: str = "question", **settings: Any) -> Iterator[Any]:
    """Show a progress bar with a heartbeat; `done` of `total` units are already finished."""
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


def _beat(shown: Any, stop: Event) -> None:
    while not stop.wait(BEAT if sys.stderr.isatty() else LINE):
        shown.refresh()
