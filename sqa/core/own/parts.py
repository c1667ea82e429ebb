"""Wrappers of user-defined parts: they check returned values and include the part's code in its fingerprint."""

import hashlib
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.own import GIVEN
from sqa.core.own.answers import ATTRIBUTES, LINE, MEMBERS, METHODS, guarded, words
from sqa.core.types import Floats


class OwnComponent:
    """Wrapper of a user-defined part; it has all methods and attributes in MEMBERS that the part defines."""

    def __init__(self, kind: str, name: str, digest: str, part: Any, config: object) -> None:
        self.own_part, self._kind, self._name, self._digest, self._config = part, kind, name, digest, config
        for member in (each for each in MEMBERS[kind] if hasattr(part, each)):
            value = getattr(part, member)
            if member in ATTRIBUTES:
                value = ATTRIBUTES[member].checked(f"{name}: {member} must be", value)
            setattr(self, member, partial(self._call, member) if callable(value) else value)

    def own_fingerprint(self) -> str | None:
        """Return the result of the part's own fingerprint(), or an empty string if it has none."""
        text: str | None = self._call("fingerprint") if hasattr(self.own_part, "fingerprint") else ""
        if text is None and self._kind != "quality metric":
            raise DataError(f"{self._name}: fingerprint() must return {LINE.expected}, got None")
        return text

    def fingerprint(self) -> str | None:
        """Return the sha256 (hex) of the part's code, config and own fingerprint, or None if the latter is None."""
        if (own := self.own_fingerprint()) is None:
            return None
        return hashlib.sha256(json.dumps([self._digest, repr(self._config), own]).encode()).hexdigest()

    def __repr__(self) -> str:
        """Return the part's name and fingerprint; a translator's fingerprint contains this text for its policy."""
        return f"{self._name} {self.fingerprint()}"

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the part and check the returned value; a DataError names the method."""
        where = f"{self._name}: {method}() must return"
        if question := getattr(arguments[0], "question", None) if arguments else None:
            where = f"{self._name}: question {getattr(question, 'id', question)}: {method}() must return"
        try:
            with guarded(where):
                value = getattr(self.own_part, method)(*arguments)
        except TypeError as error:
            if extract_tb(error.__traceback__)[-1].name != "_call":
                raise
            code = getattr(getattr(self.own_part, method), "__code__", None)
            at = f"{Path(code.co_filename).name}:{code.co_firstlineno}: " if code else ""
            call = f"{where.removesuffix(' must return')} is called with {len(arguments)} arguments"
            raise DataError(f"{at}{call}; {error}") from error
        if method == "translate":
            return words(where, value, arguments[0])
        return METHODS[method].checked(where, value, *arguments) if method in METHODS else value


class OwnMetric(OwnComponent):
    """A user-defined metric; its signature ends in a digest of its code."""

    score: Callable[[Floats], float]

    def __init__(self, kind: str, name: str, digest: str, part: Any, config: object) -> None:
        needed = (*(each for each in MEMBERS[kind] if each != "score_many"), "signature")
        if lacking := [each for each in needed if not hasattr(part, each)]:
            raise ConfigError(f"{name} returned a {type(part).__name__}, which has no {', '.join(lacking)}")
        super().__init__(kind, name, digest, part, config)
        self._size = 0  # numbers that stats() returned first
        if kind == "metric":
            self.stats = self._stats
        self.score_many = self._score_many if hasattr(part, "score_many") else self._score_each

    def signature(self) -> str:
        """Return the part's own signature and a digest of its code."""
        return f"{self._call('signature')}|source:{self._digest[:16]}"

    def _stats(self, trace: Any) -> Floats:
        """Return the part's statistics of a question; DataError if their number differs from the first question's."""
        row: Floats = self._call("stats", trace)
        self._size = self._size or len(row)
        if len(row) != self._size:
            problem = f"question {trace.question.id}: stats() must return {self._size} numbers as before"
            raise DataError(f"{self._name}: {problem}, got {len(row)}")
        return row

    def _score_many(self, stats: Floats) -> Floats:
        """Return the part's own scores of many sums; DataError if the first one differs from score()."""
        scores: Floats = self._call("score_many", stats)
        if not np.allclose(scores[:1], alone := self._score_each(stats[:1]), rtol=1e-6, equal_nan=True):
            problem = f"got {scores[0]} and {alone[0]} for {stats[0].tolist()}"
            raise DataError(f"{self._name}: score_many() must return the values of score(); {problem}")
        return scores

    def _score_each(self, stats: Floats) -> Floats:
        """Return the scores (B,) of the rows of `stats`, sums of shape (B, d); nan if a score is undefined."""
        scores = np.full(len(stats), np.nan)
        for at, row in enumerate(stats):
            with suppress(NotComputable):
                scores[at] = self.score(row)
        return scores


def component(kind: str, name: str, digest: str, part: Any, config: object) -> Any:
    """Return a user-defined part in the wrapper of its kind; kinds that are not in MEMBERS have no wrapper.

    Warns on stderr about a part without fingerprint(), unless the part was passed to `sqa.run` as an object.
    """
    if kind not in MEMBERS:
        return part
    made = (OwnMetric if "metric" in kind else OwnComponent)(kind, name, digest, part, config)
    if not hasattr(part, "fingerprint") and name not in GIVEN:
        _warn(kind, name, digest)
    return made


@cache
def _warn(kind: str, name: str, _: str) -> None:
    """Warn once per process about a part without fingerprint(), which many runs may build."""
    stored = "store keys cover only its source and config, so add one if it reads files or models"
    print(f"sqa: {kind} {name!r} has no fingerprint(); {stored}", file=sys.stderr)
