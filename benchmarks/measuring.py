"""Time two ways of doing the same work, one after the other on the same machine."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from sqa.core import TRANSLATORS
from sqa.data.datasets import available

T = TypeVar("T")
Pair = tuple[str, str, float, float]  # (measurement, unit, rate of the plain way or other program, our rate)
Pairs = Iterator[Pair]
MODEL, K = "es-en", 6


def dataset() -> str:
    """Return the largest Spanish question set of this machine."""
    return "xqb-es" if available("xqb-es") else "mini-es"


def length(rows: Any) -> int:
    """Return the total length of the rows."""
    return sum(map(len, rows))


def timed(work: Callable[[], T], units: Callable[[T], int] = length, rounds: int = 1) -> tuple[float, T]:
    """Call `work`, and return the `units` of its result per second, of the fastest of `rounds`, and its last result."""
    gc.collect()
    gc.freeze()  # existing objects would slow down the collections during the measurement
    best = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        done = work()
        best = max(best, units(done) / (time.perf_counter() - start))
    return best, done


def rate(work: Callable[[], T], units: Callable[[T], int] = length, rounds: int = 1) -> float:
    """Return the first value of `timed`."""
    return timed(work, units, rounds)[0]


def translator(name: str, **options: Any) -> Any:
    """Return the translator of a name and its options."""
    return TRANSLATORS.build(name, TRANSLATORS.config_class(name)(**options))
