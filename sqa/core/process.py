"""Threads of numerical libraries, environment of child programs, batches of similar length, progress bars.

Networks of a few million weights run slower on many threads than on one.  On a busy machine they are many times slower,
because a thread that waits for a processor delays all others.  Small models therefore use one thread, and large models
use all processors.  A user's OMP_NUM_THREADS is kept.

Progress is shown on stderr (tqdm): a bar on a terminal, a line every half minute in a pipe or a log file.  A block of
translations takes minutes, so a heartbeat thread redraws the bar with the elapsed time in the meantime.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

from sqa.core.registry import model_size

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read when numpy and torch are loaded
KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"  # torch keeps a kernel of each shape: by default 1024, or up to 300 MB
OURS = "SQA_SET_THREADS"  # holds the number set by this module, to distinguish it from a user's setting
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # "200000 100000": two processors; "max 100000": no limit

CHILD = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}  # a child program in Python then reads and writes UTF-8


def child_environment() -> dict[str, str]:
    """Return the environment for a child program, which reads and writes UTF-8."""
    return {**os.environ, **CHILD}


def usable(quota: Path = QUOTA) -> int:
    """Return the number of processors that this process may use, limited by its CPU quota."""
    bound = len(os.sched_getaffinity(0))
    try:
        share, period = quota.read_text(encoding="ascii").split()
        return bound if share == "max" else max(1, min(bound, int(share) // int(period)))
    except (OSError, ValueError):
        return bound


def part_names(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the parts in a run's config, including policies and quality metrics."""
    waiting = [config.get(key) for key in ("translator", "guesser", "buzzer")]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += [part.get("name"), part.get("policy")]
        elif isinstance(part, str):
            yield part
    quality = config.get("quality")
    for entry in quality if isinstance(quality, list) else [quality]:
        if isinstance(entry, Mapping):
            yield from map(str, entry)


def set_for(parts: Iterable[str], environment: MutableMapping[str, str] = os.environ) -> int | None:
    """Set the number of threads to that of the usable processors if a part is large, else to 1, and return it.

    `parts` are names; a user-defined part ("mine.py:build") counts as large.  Returns None if the user has set the
    number.
    """
    large = any(":" in part or model_size(part) is not None for part in parts)
    return set_threads(usable() if large else 1, environment)


def set_threads(number: int, environment: MutableMapping[str, str] = os.environ) -> int | None:
    """Set and return the number of threads of numpy and torch; return None if the user has set it.

    The environment variables take effect only if numpy and torch are not loaded yet.  If torch is loaded, it is set
    directly.  Also limits the number of kernels that torch keeps, unless the user has set it.
    """
    environment.setdefault(KERNELS, "64")
    given = environment.get(VARIABLES[0])
    if given is not None and given != environment.get(OURS):
        return None
    for variable in VARIABLES:
        if environment.get(variable) in (None, environment.get(OURS)):
            environment[variable] = str(number)
    environment[OURS] = str(number)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(number)
    return number


def buckets(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield batches of row indices, longest rows first.

    A batch has at most `tokens` tokens including padding, unless it is a single row.
    """
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if group and (len(group) + 1) * lengths[group[0]] > tokens:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


# -------------------------------------------------------------------------------------------------------- progress

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
