"""Interface of models that score the words of a translation, and the cache of results in the run's folder."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from msgspec import MsgspecError, convert, to_builtins

from sqa.core.errors import DataError
from sqa.files.atomic import write_text
from sqa.files.records import parse_json
from sqa.files.store import digest

T = TypeVar("T")


def cached(path: Path | None, what: str, key: str, kind: type[T], compute: Callable[[], T]) -> T:
    """Return the values stored as `what` in a file with this key; otherwise compute them, and write them to the file.

    Without a `path`, nothing is stored.  If the file cannot be written, as in a read-only folder, a warning goes to
    stderr.  Raises DataError if the file is damaged.
    """
    if path is not None and path.is_file():
        try:
            record = parse_json(path.read_text(encoding="utf-8"))
            if record["key"] == key:
                return convert(record[what], kind)
        except (ValueError, KeyError, TypeError, MsgspecError) as error:
            raise DataError(f"{path}: the stored {what} are damaged ({error}); delete the file") from error
    values = compute()
    if path is not None:
        try:
            write_text(path, json.dumps({"key": key, what: to_builtins(values)}) + "\n")
        except OSError as error:
            reason = error.strerror or error
            print(f"sqa: {path}: {what} not stored ({reason}), so the next call recomputes them", file=sys.stderr)
    return values


Words = Sequence[str]


class WordScores(NamedTuple):
    """Scores of one translation: one natural logarithm per target word."""

    given: tuple[float, ...]  # ln p(word | source, words before)
    alone: tuple[float, ...]  # ln p(word | words before), without the source
    short: tuple[float, ...]  # >= 0, ln p of the likeliest pieces in the word's place minus ln p of its own pieces


class WordScorer(Protocol):
    """Interface of a scoring model, as used by sqa/diagnose/detector.py."""

    group: str  # group in `sqa.diagnose.signals.GROUPS` whose weights were trained with these scores

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Return the scores of each pair of source and target words."""

    def fingerprint(self) -> str:
        """Return a hash of everything that affects the scores."""


class KeptScorer:
    """A scorer that caches its scores in a file, so that the same texts are scored only once."""

    def __init__(self, scorer: WordScorer, path: Path) -> None:
        self.group, self._scorer, self._path = scorer.group, scorer, path

    def fingerprint(self) -> str:
        """Return the fingerprint of the scorer."""
        return self._scorer.fingerprint()

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Return the scores of each pair of source and target words, from the file if it contains them."""
        key = digest([self.fingerprint(), [[list(x), list(y)] for x, y in pairs]])
        return cached(self._path, "scores", key, list[WordScores], lambda: self._scorer.score(pairs))
