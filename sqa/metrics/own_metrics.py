"""User-defined metrics and latency formulas: `module:build` or `file.py:build`.

    metrics: [ew, "half.py:build"]

`build()` returns a `Metric` (sqa/core/types.py) or a `Formula`, which is scored as a `Latency` (both in
sqa/metrics/latency.py).  The signature ends in a digest of the code, so results of an edited file are never mixed with
stored results of earlier versions.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from sqa.core import BuiltMetric, ConfigError, DataError, Floats
from sqa.core.own.code import built
from sqa.core.own.parts import SCORES, OwnMetric
from sqa.core.paths import short
from sqa.metrics.latency import Convention, Formula, Latency

_TYPES: dict[str, Any] = {"str": str, "bool": bool, "int": int}


def own_metric(target: str) -> BuiltMetric:
    """Return the metric that `target` builds.  Raises ConfigError if it is invalid."""
    code, part = built(target)
    name = short(code.target)
    try:
        metric = Latency(_formula(name, part)) if isinstance(part, Formula) else part
        made: Any = OwnMetric("metric", name, code.digest, metric, None)
    except DataError as error:
        raise ConfigError(str(error)) from error
    return made  # type: ignore[no-any-return]  # its members come from the user's object


def _formula(name: str, formula: Formula) -> Formula:
    """Return a copy of a formula that checks the values which it computes.

    Raises ConfigError if a field has the wrong type.
    """
    for each in fields(formula):
        value, wanted = getattr(formula, each.name), _TYPES.get(str(each.type), Callable)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            what = "a function" if wanted is Callable else f"of type {each.type}"
            raise ConfigError(f"{name}: {each.name} must be {what}, got {type(value).__name__}")

    def compute(delays: Any, convention: Convention) -> Floats:
        values: Floats = SCORES.checked(
            f"{name}: the formula's compute() must return", formula.compute(delays, convention), delays.source
        )
        return values

    return replace(formula, compute=compute)
