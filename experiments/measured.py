"""Rows of measured tables: several metrics of one system, each with its interval over questions."""

from collections.abc import Sequence
from typing import Any

from sqa.core.significance import bootstrap_many
from sqa.core.types import Floats
from sqa.pipeline.engine import RunResult
from sqa.results import Row, row_of

Scored = Sequence[tuple[Any, Floats]]  # metric, its statistics (n, d)


def scored(result: RunResult) -> Scored:
    """Return the metrics of a run that could be computed, with their statistics."""
    return [(metric, result.stats[metric.name]) for metric in result.metrics if metric.name in result.stats]


def intervals(
    cell: tuple[str, ...], given: Scored, resamples: int = 1000, seed: int = 0, unit: str | None = None
) -> list[Row]:
    """Return a row for each metric, all from the same resamples.

    unit: unit of metrics that define neither unit nor signature; None: each metric has its own.
    """
    if not given:
        return []
    metrics, stats = zip(*given, strict=True)
    named = [(m.unit, m.signature()) if unit is None else (unit, "") for m in metrics]
    measured = bootstrap_many(stats, metrics, resamples, seed)
    return [row_of(cell, m.name, i, *of) for m, i, of in zip(metrics, measured, named, strict=True)]
