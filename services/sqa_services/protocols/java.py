"""Java behaviour that the output of old programs depends on: formatting of doubles, Hashtable order, String.trim."""

import math
from bisect import insort_left
from collections.abc import Iterable
from decimal import Decimal

BLANKS = "".join(map(chr, range(0x21)))  # characters that String.trim removes


def double_text(value: float) -> str:
    """Format a finite number or NaN like `Double.toString`: "4.0", "1.0E-5", "1.2E7"; decimal from 1e-3 up to 1e7."""
    if math.isnan(value):
        return "NaN"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    tail = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{tail}E{exponent + len(digits) - 1}"


def string_hash(text: str) -> int:
    """Return `String.hashCode` without its sign bit, 0 to 2^31 - 1."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + low + 256 * high) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


def hashtable_order(keys: Iterable[str]) -> list[str]:
    """Return keys in the order of a `java.util.Hashtable` after insertion: last bucket first, newest first."""
    size, order = 11, list[str]()

    def from_the_end(key: str) -> int:
        return -(string_hash(key) % size)

    for key in dict.fromkeys(keys):
        moved = [key]
        if len(order) >= int(size * 0.75):  # rehashing moves each entry to the head of its bucket
            size, moved, order = 2 * size + 1, [*order, key], []
        for entry in moved:
            insort_left(order, entry, key=from_the_end)
    return order
