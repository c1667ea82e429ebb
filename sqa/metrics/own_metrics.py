"""Metrics, latency formulas and conventions of your own: `module:build` or `file.py:build`.

    metrics: [ew, "half.py:build", "al@mine.py:convention"]

`build()` returns a `Metric` (sqa/core/types.py) or a `Formula`, which is scored as a `Latency` (both in
sqa/metrics/latency.py); of `al@...` a `Convention`.  The signature ends in a hash of the code, so that numbers of
edited files are neither taken from the store nor compared with those of the files before.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.own import answers, short
from sqa.core.own.answers import Call
from sqa.core.own.code import Code
from sqa.core.own.parts import METRIC, asked, built, has
from sqa.core.types import Floats
from sqa.metrics.latency import FORMULAS, Convention, Formula, Latency

METHODS = ("signature", "stats", "score")


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """A user's metric; its results are checked, and its signature has the hash of its code."""

    metric: Any
    own_code: Code
    name: str
    unit: str
    digits: int
    label: str
    kind: str
    higher_is_better: bool
    _size: list[int] = field(default_factory=list)  # of its statistics: one number, once there are some

    def signature(self) -> str:
        """The metric's signature, with all code that was executed."""
        return f"{self._signature()}|source:{self.own_code.whole[:16]}"

    def identity(self) -> str:
        """The metric's signature, with its name and the code that was executed until it was built."""
        return f"{short(self.own_code.target)}|{self._signature()}|source:{self.own_code.digest[:16]}"

    def stats(self, trace: object) -> Floats:
        stats = self._call("stats", answers.statistics, trace)
        if self._size and self._size[0] != len(stats):
            where = f"{short(self.own_code.target)}: stats()"
            raise DataError(f"{where} must return as many numbers for each question, got {self._size[0]}, {len(stats)}")
        self._size[:] = [len(stats)]
        return np.array(stats, dtype=np.float64)

    def score(self, stats: Floats) -> float:
        return float(self._call("score", answers.finite, stats))

    def score_many(self, stats: Floats) -> Floats:
        """(B, d) -> (B,): the metric's own fast path, else its `score` of each; nan where it has none."""
        if has(self.metric, "score_many"):
            return np.asarray(self._call("score_many", answers.scores, stats))
        with self.own_code.running():  # once for all rows: sys.modules is not exchanged for each
            return np.array([self._score_or_nan(row) for row in stats], dtype=np.float64)

    def _score_or_nan(self, stats: Floats) -> float:
        try:
            return self.score(stats)
        except NotComputable:
            return math.nan

    def _signature(self) -> str:
        return str(self._call("signature", answers.text))

    def _call(self, name: str, check: Any, *arguments: Any) -> Any:
        return asked(self.own_code, self.metric, name, check, *arguments)


def own_metric(target: str) -> OwnMetric:
    """The metric that `target` builds.  An invalid one: ConfigError."""
    code, part = built(target)
    metric = Latency(_formula(code, part)) if isinstance(part, Formula) else part
    lacking = [name for name in (*METRIC, *METHODS) if not has(metric, name)]
    if lacking:
        raise ConfigError(f"{short(target)} made a {type(part).__name__}, which has no {', '.join(lacking)}")
    return _own(metric, code)


def _own(metric: Any, code: Code) -> OwnMetric:
    calls = {name: Call(f"{short(code.target)}: {name}", "must be") for name in METRIC}
    with code.running():
        try:
            shown = {name: check(calls[name], getattr(metric, name)) for name, check in METRIC.items()}
        except DataError as error:
            raise ConfigError(str(error)) from error
    return OwnMetric(metric, code, **shown)


def _formula(code: Code, formula: Formula) -> Formula:
    """A formula whose values are checked."""
    _check_types(short(code.target), formula)
    call = Call(f"{short(code.target)}: the formula's compute()")

    def compute(delays: Any, convention: Convention) -> Floats:
        values: Floats = answers.scores(call, formula.compute(delays, convention), delays.source)
        return values

    return replace(formula, compute=compute)


def own_latency(formula: str, target: str) -> OwnMetric:
    """A formula of FORMULAS under the convention that `target` builds.  An invalid one: ConfigError."""
    code, _ = built(target)
    return _own(Latency(formula, own_convention(target)), code)


def own_convention(target: str) -> Convention:
    """The convention that `target` builds.  An invalid one: ConfigError."""
    _, convention = built(target)
    if not isinstance(convention, Convention):
        raise ConfigError(f"{short(target)} made a {type(convention).__name__}, expected a Convention")
    _check_types(short(target), convention)
    unknown = [name for name in convention.formulas if name not in FORMULAS]
    if unknown:
        among = ", ".join(FORMULAS)
        raise ConfigError(f"{short(target)}: formulas must be among {among}, got {answers.shown(unknown[0])}")
    return convention


def _check_types(target: str, part: Formula | Convention) -> None:
    """The fields of a value are of their types, else ConfigError."""
    for each in fields(part):
        value, wanted = getattr(part, each.name), _TYPES.get(str(each.type), Callable)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            what = "a function" if wanted is Callable else f"of type {each.type}"
            raise ConfigError(f"{target}: {each.name} must be {what}, got {answers.shown(value)}")


_TYPES: dict[str, Any] = {"str": str, "bool": bool, "int": int, "tuple[str, ...]": tuple}
