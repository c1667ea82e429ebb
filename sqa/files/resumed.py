"""What a training that is gone on with has in common with the one that was cut off."""

from __future__ import annotations

from collections.abc import Mapping


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """ " (KEY, KEY differ)", "" where an old checkpoint does not say."""
    keys = [key for key in now if before.get(key) != now[key]] if before else []
    return f" ({', '.join(keys)} differ)" if keys else ""
