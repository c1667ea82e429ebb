"""Parser of a language model's reply: pages with confidences, or the reason why the reply is unusable.

A reply is JSON, {"guesses": [{"page": "Title", "confidence": 0.4}, ...]} or the bare list.  The parser accepts one code
fence around it, with words before and after the fence, and a leading <think> block, but nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from guessers.retrieval.bm25 import Index
from guessers.text import fold
from sqa.core import ConfigError, DataError, Guess, canonical, key
from sqa.files import digest, records, resolve_model

MAX_TITLE = 255  # UTF-8 bytes, the length of the longest Wikipedia title
MAX_LIST = 64 << 20  # maximum size of a file of titles, in bytes
RANK_DISCOUNT = 1e-6  # relative loss of confidence per rank, so that ties keep the model's order
LABEL = "Answer:"  # before a title in the prompt of solved questions
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


class Parsed(NamedTuple):
    """The guesses of a reply, best first."""

    guesses: tuple[Guess, ...]
    problem: str  # why the reply is unusable; "" if it is usable


class Titles:
    """The list of permitted pages."""

    def __init__(self, titles: Iterable[str]) -> None:
        self.pages = frozenset(title for title in map(canonical, titles) if title)
        self._by_key = {key(title): title for title in sorted(self.pages, reverse=True)}
        self._by_fold: dict[str, str | None] = {}
        for title in self._by_key.values():
            folded = fold(title)
            self._by_fold[folded] = None if folded in self._by_fold else title

    @classmethod
    def of(cls, name: str) -> Titles:
        """Return the lines of a .txt file, or the pages of a BM25 model (a bundled one or a folder)."""
        if records.suffix(Path(name)) != ".txt":
            return cls(Index.load(resolve_model(name)).titles)
        path = Path(name).expanduser()
        try:
            if path.stat().st_size > MAX_LIST:
                raise DataError(f"{path}: more than {MAX_LIST} bytes; is it a list of titles?")
            titles = cls(records.lines(path))
        except OSError as error:
            raise ConfigError(f"pages: {path} cannot be read: {error.strerror or error}") from error
        if not titles.pages:
            raise DataError(f"{path}: names no page")
        return titles

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the titles."""
        return digest(sorted(self.pages))

    def find(self, page: str) -> str | None:
        """Return the listed title of the same answer (`sqa.core.answers`), or the only one equal without accents.

        If neither exists, return None.
        """
        return self._by_key.get(key(page)) or self._by_fold.get(fold(canonical(page)))


def parse(text: str, most: int, titles: Titles | None = None) -> Parsed:
    """Return at most `most` guesses of a reply.

    Scores are the confidences in 0..1, reduced by a relative 1e-6 per rank in the reply.
    """
    try:
        value = json.loads(_unwrapped(text))
    except (ValueError, RecursionError):  # numbers with thousands of digits raise ValueError
        return Parsed((), "not JSON")
    items = value.get("guesses") if isinstance(value, dict) else value
    if not isinstance(items, list):
        return Parsed((), 'JSON without a list "guesses"')
    scores: dict[str, float] = {}
    named: set[str] = set()
    accepted = 0
    for item in items[:most]:
        page, confidence = _page(item), _confidence(item)
        accepted += page is not None and confidence is not None
        if page is not None and titles is not None:
            page = titles.find(page)
        if page is not None and confidence is not None and key(page) not in named:
            named.add(key(page))
            scores[page] = confidence * (1 - RANK_DISCOUNT * len(scores))
    if items and not accepted:
        return Parsed((), 'no guess with a "page" and a "confidence" in 0..1')
    guesses = sorted((Guess(page, score) for page, score in scores.items()), key=lambda g: (-g.score, g.page))
    return Parsed(tuple(guesses), "")


def parse_title(text: str, titles: Titles | None = None) -> Parsed:
    """Return the page named by the first line of a reply, with score 1, because such a reply has no confidence.

    A chat model may repeat the label that ends the prompt.
    """
    line = text.strip().partition("\n")[0].removeprefix(LABEL).strip()
    page = _page({"page": line})
    if page is None:
        return Parsed((), "no title on its first line")
    if titles is not None:
        page = titles.find(page)
    return Parsed(() if page is None else (Guess(page, 1.0),), "")


def _unwrapped(text: str) -> str:
    """Return the reply without its thoughts and its code fence."""
    text = _THOUGHT.sub("", text, count=1) if text.lstrip().startswith("<think>") else text
    fenced = _FENCED.findall(text)
    return (fenced[0] if len(fenced) == 1 else text).strip().removeprefix("\ufeff")


def _page(item: Any) -> str | None:
    """Return the title of a guess, None if it is malformed."""
    page = item.get("page") if isinstance(item, dict) else None
    if not isinstance(page, str) or any("\ud800" <= c <= "\udfff" for c in page):
        return None
    page = canonical(page)
    return page if page.isprintable() and 0 < len(page.encode()) <= MAX_TITLE else None


def _confidence(item: Any) -> float | None:
    """Return the confidence of a guess, None if it is not a number in 0..1."""
    value = item.get("confidence") if isinstance(item, dict) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= 1 else None
