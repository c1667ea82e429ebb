"""Time two ways of doing the same work, one after the other on the same machine."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

from sqa.core import TRANSLATORS

Pair = tuple[str, str, float, float]  # (measurement, unit, rate of the plain way or other program, our rate)
Pairs = Iterator[Pair]
MODEL, K = "es-en", 6


def rate(work: Callable[[], int], rounds: int = 1) -> float:
    """Call `work`, which returns the units of work done, and return units per second of the fastest of `rounds`."""
    gc.collect()
    gc.freeze()  # existing objects would slow down the collections during the measurement
    best = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        done = work()
        best = max(best, done / (time.perf_counter() - start))
    return best


def translator(name: str, **options: Any) -> Any:
    """Return the translator of a name and its options."""
    return TRANSLATORS.build(name, TRANSLATORS.config_class(name)(**options))
