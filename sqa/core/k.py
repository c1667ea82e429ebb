"""The k of a translator: the number of source words read before the first target word."""

from typing import Literal

from sqa.core.errors import ConfigError

K = int | str  # at least 1, or "full" to read the whole sentence first
FULL: Literal["full"] = "full"
LONGEST = 10_000  # number of source words for "full", larger than any sentence


def parse_k(k: K) -> int:
    """Return a config's k as a number of words; raises ConfigError unless k is an int >= 1 or "full"."""
    if k == FULL:
        return LONGEST
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        quoted = "; write it without quotes" if isinstance(k, str) and k.isdecimal() else ""
        raise ConfigError(f"k: must be >= 1 or 'full', got {k!r}{quoted}")
    return k


def order(k: K | float) -> float:
    """Return a sort key for values of k or shares of the source; "full" and all other names come last."""
    try:
        return float(k)
    except ValueError:
        return float("inf")
