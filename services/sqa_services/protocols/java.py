"""The three habits of Java that show in what old Java programs print: doubles, Hashtable order, String.trim."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Generic, TypeVar

V = TypeVar("V")
BLANKS = "".join(map(chr, range(0x21)))  # what String.trim takes off


def double_text(value: float) -> str:
    """`Double.toString`: "4.0", "1.0E-5", "1.2E7", "NaN"; decimal form from 1e-3 up to 1e7."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    tail = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{tail}E{exponent + len(digits) - 1}"


def string_hash(text: str) -> int:
    """`String.hashCode` without its sign bit, 0 to 2^31 - 1."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + low + 256 * high) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


class Hashtable(Generic[V]):
    """`java.util.Hashtable` of strings as far as its order shows: the last bucket first, newest entry first."""

    def __init__(self) -> None:
        self._buckets: list[list[str]] = [[] for _ in range(11)]
        self._values: dict[str, V] = {}

    def get(self, key: str) -> V | None:
        return self._values.get(key)

    def __getitem__(self, key: str) -> V:
        return self._values[key]

    def __len__(self) -> int:
        return len(self._values)

    def put(self, key: str, value: V) -> None:
        """Adds or replaces; a replaced entry keeps its place."""
        if key not in self._values:
            if len(self._values) >= int(len(self._buckets) * 0.75):
                self._rehash()
            self._bucket(key).insert(0, key)
        self._values[key] = value

    def __iter__(self) -> Iterator[str]:
        for bucket in reversed(self._buckets):
            yield from bucket

    def _bucket(self, key: str) -> list[str]:
        return self._buckets[string_hash(key) % len(self._buckets)]

    def _rehash(self) -> None:
        keys = list(self)  # Java moves the entries in this order, each to the head of its new bucket
        self._buckets = [[] for _ in range(2 * len(self._buckets) + 1)]
        for key in keys:
            self._bucket(key).insert(0, key)
