"""User-defined metrics, latency formulas and conventions: `module:build` or `file.py:build`.

    metrics: [ew, "half.py:build", "al@mine.py:convention"]

`build()` returns a `Metric` (sqa/core/types.py) or a `Formula`, which is scored as a `Latency` (both in
sqa/metrics/latency.py).  In `al@...` it returns a `Convention`.  The signature ends in a digest of the code, so
results of an edited file are never mixed with stored results of earlier versions.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.own import short
from sqa.core.own.answers import SCORES
from sqa.core.own.code import Code, built
from sqa.core.own.parts import OwnMetric
from sqa.core.types import BuiltMetric, Floats
from sqa.metrics.latency import FORMULAS, Convention, Formula, Latency


def own_metric(target: str) -> BuiltMetric:
    """Return the metric that `target` builds.  Raises ConfigError if it is invalid."""
    code, part = built(target)
    return _own(code, Latency(_formula(code, part)) if isinstance(part, Formula) else part)


def own_latency(formula: str, target: str) -> BuiltMetric:
    """Return the metric of a formula in FORMULAS under the convention that `target` builds.

    Raises ConfigError if the convention is invalid.
    """
    code, convention = _convention(target)
    return _own(code, Latency(formula, convention))


def own_convention(target: str) -> Convention:
    """Return the convention that `target` builds.  Raises ConfigError if it is invalid."""
    return _convention(target)[1]


def _own(code: Code, metric: Any) -> BuiltMetric:
    try:
        made: Any = OwnMetric("metric", short(code.target), code.digest, metric, None)
    except DataError as error:
        raise ConfigError(str(error)) from error
    return made  # type: ignore[no-any-return]  # its members come from the user's object


def _formula(code: Code, formula: Formula) -> Formula:
    """Return a copy of a formula that checks the values which it computes."""
    name = short(code.target)
    _check_types(name, formula)

    def compute(delays: Any, convention: Convention) -> Floats:
        values: Floats = SCORES.checked(
            f"{name}: the formula's compute() must return", formula.compute(delays, convention), delays.source
        )
        return values

    return replace(formula, compute=compute)


def _convention(target: str) -> tuple[Code, Convention]:
    code, convention = built(target)
    if not isinstance(convention, Convention):
        raise ConfigError(f"{short(target)} returned a {type(convention).__name__}, expected a Convention")
    _check_types(short(target), convention)
    if unknown := [name for name in convention.formulas if name not in FORMULAS]:
        raise ConfigError(f"{short(target)}: formulas must be among {', '.join(FORMULAS)}, got {unknown[0]!r:.60}")
    return code, convention


def _check_types(target: str, part: Formula | Convention) -> None:
    """Raise ConfigError if a field of a value has the wrong type."""
    for each in fields(part):
        value, wanted = getattr(part, each.name), _TYPES.get(str(each.type), Callable)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            what = "a function" if wanted is Callable else f"of type {each.type}"
            raise ConfigError(f"{target}: {each.name} must be {what}, got {type(value).__name__}")


_TYPES: dict[str, Any] = {"str": str, "bool": bool, "int": int, "tuple[str, ...]": tuple}
