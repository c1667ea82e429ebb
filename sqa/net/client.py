"""Addresses of external services, and the pauses between repeated requests."""

import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit


def url_problems(url: str) -> list[str]:
    """List the problems of a service's address in a config."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        return [f"url: expected something like http://localhost:4861, got {without_secret(url)!r}"]
    if parts.password:
        return ["url: run folders keep it, so it must not contain a password; name the token's variable in token_env"]
    return []


def without_secret(url: str) -> str:
    """Return an address without user name and password, for messages."""
    return re.sub(r"//[^/@]*@", "//", url)


def attempts(first: float, longest: float, number: int) -> Iterator[bool]:
    """Yield, before each attempt at a request, whether it is the last one; pause before every further attempt.

    There are `number` attempts.  The pause is `first` seconds and doubles up to `longest`.
    """
    for attempt in range(1, number + 1):
        yield attempt == number
        if attempt < number:
            time.sleep(min(first * 2 ** (attempt - 1), longest))
