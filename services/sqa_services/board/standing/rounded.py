"""Scores on data whose answers are secret, rounded to about one example's share before they leave the board.

The position of a buzz gives each question a different weight, so a score at full precision reveals which guesses of a
submission were right.  A rounded score reveals only how many.  For the same reason a part of the data (a tag, a
perturbation) with few examples has no score.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqa.files.records import parse_json
from sqa_services.board.metrics import DELTA, EVAL, Additive, pretty

FEW = 20  # examples: a part with fewer has no score
LAG_STEP = 0.1  # source words; lags are a file's own, but for the length of a reference
RANGES = {"0-1": 1.0, "0-100": 100.0}  # of the metrics of `sqa.metrics`; those of labels are percentages


def rounded(metric: str, value: float, examples: int) -> float:
    """A value in steps of 1, 2 or 5 times a power of ten that are no finer than one example's share of the range."""
    if metric not in EVAL and metric not in DELTA:
        return value  # of the work, not of the answers
    get = EVAL.get(metric)
    range_ = RANGES.get(get.metric.unit) if isinstance(get, Additive) else 100.0
    step = LAG_STEP if range_ is None else _step(range_ / max(examples, 1))
    return round(round(value / step) * step, 9)


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def published(row: Mapping[str, Any], dataset: Mapping[str, Any], perf_metric: str) -> dict[str, Any]:
    """An evaluation as it may leave the board: unchanged for an open data set or without a result."""
    result, n = row["result"], dataset["examples"]
    if dataset["phase"] == "open" or result is None:
        return dict(row)
    metadata = parse_json(result["metadata_json"])
    if row["prefix"]:
        metadata["transforms"] = [_transform(transform) for transform in metadata["transforms"]]
        return {**row, "result": {**result, "metadata_json": json.dumps(metadata)}}
    metadata = _values(metadata, n)
    parts = [part for part in metadata["perf_by_tag"] if part.get("n", 0) >= FEW]
    metadata["perf_by_tag"] = [
        _part(part, perf_metric, part["n"]) | {"perf_dict": _values(part["perf_dict"], part["n"])} for part in parts
    ]
    if "intervals" in metadata:
        metadata["intervals"] = {name: ends(name, interval, n) for name, interval in metadata["intervals"].items()}
    return {**row, "result": _part(result, perf_metric, n) | {"metadata_json": json.dumps(metadata)}}


def ends(metric: str, interval: Sequence[float | None] | None, examples: int) -> list[float | None] | None:
    """The ends of an interval of a metric, rounded."""
    if interval is None:
        return None
    return [None if end is None else rounded(metric, end, examples) for end in interval]


def _values(values: Mapping[str, Any], n: int) -> dict[str, Any]:
    return {name: rounded(name, value, n) if name in EVAL else value for name, value in values.items()}


def _part(part: Mapping[str, Any], metric: str, n: int) -> dict[str, Any]:
    """The performance on all examples or on those of a tag, and its interval if it has one."""
    if part["perf"] is None:
        return dict(part)
    perf = rounded(metric, part["perf"], n)
    interval = {"interval": ends(metric, part["interval"], n)} if "interval" in part else {}
    return {**part, "perf": perf, "pretty_perf": pretty(metric, perf), **interval}


def _transform(transform: Mapping[str, Any]) -> dict[str, Any]:
    """What one perturbation changes; the percentage of equal answers is the file's own."""
    few = {"refusal": f"fewer than {FEW} examples, and their answers are kept"}
    differences = {
        name: few if transform["n"] < FEW else _difference(name, values, transform["n"])
        for name, values in transform["differences"].items()
    }
    return {**transform, "differences": differences}


def _difference(metric: str, values: Mapping[str, Any], n: int) -> dict[str, Any]:
    scores, chances = ("a", "b", "diff", "low", "high"), ("p_bootstrap", "p_randomization")
    given = {key: value for key, value in values.items() if value is not None}
    return {
        **values,
        **{key: rounded(metric, given[key], n) for key in scores if key in given},
        **{key: round(given[key], 2) for key in chances if key in given},
    }
