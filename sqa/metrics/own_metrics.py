"""Metrics, latency formulas and conventions of your own: `module:build` or `file.py:build`.

    metrics: [ew, "half.py:build", "al@mine.py:convention"]

`build()` returns a `Metric` (sqa/core/interfaces.py) or a `Formula`, which is scored as a `Latency` (both in
sqa/metrics/latency.py); of `al@...` a `Convention`.  The signature ends in a hash of the source, so that numbers of an
edited file are neither taken from the store nor compared with those of the file before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sqa.core import own
from sqa.core.arrays import Floats
from sqa.core.errors import ConfigError, NotComputable
from sqa.metrics.latency import Convention, Formula, Latency

if TYPE_CHECKING:
    from sqa.core.interfaces import Metric

NEEDED = ("name", "unit", "digits", "label", "kind", "higher_is_better", "signature", "stats", "score")


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """A metric from elsewhere, its signature with the hash of its source."""

    metric: Metric
    source: str  # sha256, 64 hex digits

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def digits(self) -> int:
        return self.metric.digits

    @property
    def label(self) -> str:
        return self.metric.label

    @property
    def kind(self) -> str:
        return self.metric.kind

    @property
    def higher_is_better(self) -> bool:
        return self.metric.higher_is_better

    def signature(self) -> str:
        return f"{self.metric.signature()}|source:{self.source[:16]}"

    def stats(self, trace: object) -> Floats:
        return self.metric.stats(trace)

    def score(self, stats: Floats) -> float:
        return self.metric.score(stats)

    def score_many(self, stats: Floats) -> Floats:
        """(B, d) -> (B,): the metric's own fast path, else its `score` of each; nan where it has none."""
        many = getattr(self.metric, "score_many", None)
        if many is not None:
            return np.asarray(many(stats))
        return np.array([self._score_or_nan(row) for row in stats], dtype=np.float64)

    def _score_or_nan(self, stats: Floats) -> float:
        try:
            return self.metric.score(stats)
        except NotComputable:
            return math.nan


def own_metric(place: str) -> OwnMetric:
    """The metric that a place builds.  ConfigError says what is wrong with it."""
    built = own.built(place)
    metric = Latency(built) if isinstance(built, Formula) else built
    lacking = [name for name in NEEDED if not hasattr(metric, name)]
    if lacking:
        raise ConfigError(f"{own.short(place)} made a {type(built).__name__}, which has no {', '.join(lacking)}")
    part = None if isinstance(built, Formula) else built  # a formula's own class is ours, its function is the file's
    return OwnMetric(metric, own.part_digest(own.located(place), part) or "unknown")


def own_latency(formula: str, place: str) -> OwnMetric:
    """A formula of FORMULAS under the convention that a place builds.  ConfigError says what is wrong."""
    built = own_convention(place)
    return OwnMetric(Latency(formula, built), own.part_digest(own.located(place), None) or "unknown")


def own_convention(place: str) -> Convention:
    """The convention that a place builds.  ConfigError says what is wrong."""
    built = own.built(place)
    if not isinstance(built, Convention):
        raise ConfigError(f"{own.short(place)} made a {type(built).__name__}, expected a Convention")
    return built
