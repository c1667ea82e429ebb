"""Completion: the page titles that go on from what was typed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

SHOWN = 8
_WHOLE = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe", "ı": "i"})  # Unicode sees no accent there


class Titles:
    """Page titles, found by their beginning or by that of one of their words."""

    def __init__(self, titles: Iterable[str]) -> None:
        plain = ((_plain(title), title) for title in titles)
        self._titles = sorted(plain, key=lambda pair: (len(pair[0]), pair))

    def like(self, text: str) -> list[str]:
        """At most SHOWN titles for a text, short ones first: those that begin with it, then by one of their words.

        Case and accents make no difference; fewer than two letters find nothing.
        """
        prefix = _plain(text)
        if len(prefix) < 2:
            return []
        first = [title for plain, title in self._titles if plain.startswith(prefix)]
        if len(first) < SHOWN:
            inner = f" {prefix}"
            first += [title for plain, title in self._titles if inner in plain and not plain.startswith(prefix)]
        return first[:SHOWN]

    def meant(self, text: str) -> str:
        """The one title that differs from a text in nothing but case, accents and punctuation; else the text."""
        plain = _plain(text)
        matches = [title for other, title in self._titles if other == plain]
        return matches[0] if len(matches) == 1 else text


def _plain(text: str) -> str:
    """A text without case, accents and punctuation."""
    letters = unicodedata.normalize("NFKD", text.replace("_", " ")).casefold().translate(_WHOLE)
    kept = "".join(c if c.isalnum() else "" if unicodedata.combining(c) else " " for c in letters)
    return " ".join(kept.split())
