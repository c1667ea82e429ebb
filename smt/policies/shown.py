"""Changes of the text shown to a reader, as words."""

from collections.abc import Sequence
from itertools import takewhile

from sqa.core.types import Write

Words = tuple[str, ...]


def append(shown: Words, words: Words) -> Words:
    """Extend `shown` with the words at later positions of `words`."""
    return shown + words[len(shown) :]


def agreed(translations: Sequence[Words]) -> Words:
    """Return the longest common prefix of all translations."""
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*translations, strict=False))
    return tuple(column[0] for column in columns)


def without_last(words: Words, n: int) -> Words:
    """Return all but the last n words."""
    return words[: max(0, len(words) - n)]


def writes(before: Words, after: Words) -> list[Write]:
    """Return the writes that turn `before` into `after`; their common prefix stays.

    The first write retracts words.  It has no word itself if no word follows.
    """
    kept = len(agreed([before, after]))
    new, erase = after[kept:], len(before) - kept
    if not new:
        return [Write("", erase)] if erase else []
    return [Write(new[0], erase), *map(Write, new[1:])]
