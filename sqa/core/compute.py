"""Choose the threads of numerical libraries and the encoding of streams, and group rows of similar length into batches.

Networks of a few million weights run slower on many threads than on one.  On a busy machine they are many times slower,
because a thread that waits for a processor delays all others.  Small models therefore use one thread, and large models
use all processors.  A user's OMP_NUM_THREADS is kept.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

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
