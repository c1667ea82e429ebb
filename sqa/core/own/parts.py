"""A part of your own as the project calls it: what it returns is checked, and its code is in its fingerprint."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.own import GIVEN
from sqa.core.own.answers import ANY, ATTRIBUTES, LINE, MEMBERS, METHODS, words
from sqa.core.types import Floats, Write

TAG = "\0"  # key of what JSON lacks; no text of a config holds it


class OwnComponent:
    """A part of your own: those methods and attributes of its kind that the part has, checked."""

    def __init__(self, kind: str, name: str, digest: str, part: Any, config: object) -> None:
        self.own_part, self._kind, self._name, self._digest, self._config = part, kind, name, digest, config
        for member in (each for each in MEMBERS[kind] if hasattr(part, each)):
            if member in METHODS:
                setattr(self, member, partial(self._call, member))
                continue
            value = getattr(part, member)
            value = list(value) if isinstance(value, Set) else value  # pages need no order
            setattr(self, member, ATTRIBUTES[member].checked(f"{name}: {member} must be", value))
        if kind == "translator" and hasattr(part, "translate"):
            self.translate = self._translate

    def own_fingerprint(self) -> str | None:
        """Return what the part's fingerprint() returns; empty without one."""
        text: str | None = self._call("fingerprint") if hasattr(self.own_part, "fingerprint") else ""
        if text is None and self._kind != "quality metric":
            raise DataError(f"{self._name}: fingerprint() must return {LINE.expected}, got None")
        return text

    def fingerprint(self) -> str | None:
        """Return the sha256 (hex) of its code, its config and its own fingerprint; None if that is None."""
        if (own := self.own_fingerprint()) is None:
            return None
        return hashlib.sha256(json.dumps([self._digest, tagged(self._config), own]).encode()).hexdigest()

    def __repr__(self) -> str:
        """Its name and fingerprint: the fingerprints of translators hold this of a policy."""
        return f"{self._name} {self.fingerprint()}"

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the part.  DataErrors, also of a failed call, name the method."""
        where = f"{self._name}: {method}()"
        try:
            value = getattr(self.own_part, method)(*arguments, **options)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:  # from within it
                raise
            raise DataError(f"{where} cannot be called: {error}") from error
        except (DataError, OSError) as error:
            raise DataError(f"{where}: {error}") from error
        return METHODS.get(method, ANY).checked(f"{where} must return", value, *arguments, *options.values())

    def _translate(self, source: Iterator[str]) -> Iterator[str | Write]:
        return words(f"{self._name}: translate() must return", self._call("translate", source))


class OwnMetric(OwnComponent):
    """A metric of your own; its signature ends in a digest of its code."""

    score: Callable[[Floats], float]

    def __init__(self, kind: str, name: str, digest: str, part: Any, config: object) -> None:
        needed = (*(each for each in MEMBERS[kind] if each != "score_many"), "signature")
        if lacking := [each for each in needed if not hasattr(part, each)]:
            raise ConfigError(f"{name} made a {type(part).__name__}, which has no {', '.join(lacking)}")
        super().__init__(kind, name, digest, part, config)
        self._size: int | None = None  # of the statistics of a question, once there are some
        self.stats = self._stats
        if not hasattr(part, "score_many"):
            self.score_many = self._score_each

    def signature(self) -> str:
        """Return the part's own signature and a digest of its code."""
        return f"{self._call('signature')}|source:{self._digest[:16]}"

    def _stats(self, trace: object) -> Floats:
        """Return the statistics of a question, as many numbers for each."""
        stats: Floats = self._call("stats", trace)
        if len(stats) != (self._size or len(stats)):
            wrong = f"as many numbers for each question, got {self._size}, {len(stats)}"
            raise DataError(f"{self._name}: stats() must return {wrong}")
        self._size = len(stats)
        return stats

    def _score_each(self, stats: Floats) -> Floats:
        """Return the score of each row of sums (B, d), nan where there is none: (B,) float64."""
        scores = np.full(len(stats), np.nan)
        for at, row in enumerate(stats):
            with suppress(NotComputable):
                scores[at] = self.score(row)
        return scores


def component(kind: str, name: str, digest: str, part: Any, config: object) -> Any:
    """Return a part of your own of a kind of registry as the project calls it."""
    if kind not in MEMBERS:
        return part
    made = (OwnMetric if "metric" in kind else OwnComponent)(kind, name, digest, part, config)
    if not hasattr(part, "fingerprint") and name not in GIVEN:
        print(
            f"sqa: {kind} {name!r} has no fingerprint(); its results are stored "
            "under its source and config, so give it one if it reads files or models",
            file=sys.stderr,
        )
    return made


def tagged(value: Any) -> Any:
    """Return a config's value as JSON.  Values that differ in content, key types or class differ; a tuple is a list."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [tagged(item) for item in value]
    content: Any = str(value)
    if isinstance(value, Mapping):
        if all(type(key) is str and key != TAG for key in value):
            return {key: tagged(item) for key, item in value.items()}
        content = sorted(json.dumps([tagged(key), tagged(item)], sort_keys=True) for key, item in value.items())
    elif is_dataclass(value):
        content = {each.name: tagged(getattr(value, each.name)) for each in fields(value)}
    elif isinstance(value, (set, frozenset)):
        content = sorted(map(repr, value))
    return {TAG: [type(value).__qualname__, content]}
