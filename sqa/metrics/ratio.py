"""Scores that are a ratio of the first two statistics: sum of values / number of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqa.core.arrays import Floats
from sqa.core.errors import NotComputable


def ratio(stats: Floats, name: str) -> float:
    """stats[0] / stats[1] of summed statistics (d,).  Nothing counted: NotComputable naming the metric."""
    if not stats[1] > 0:
        raise NotComputable(f"{name}: undefined, it has no value on any question")
    return float(stats[0] / stats[1])


def ratio_many(stats: Floats) -> Floats:
    """The same for many sums at once: (B, d) -> (B,), nan where nothing was counted."""
    values = np.full(len(stats), np.nan)
    np.divide(stats[:, 0], stats[:, 1], out=values, where=stats[:, 1] > 0)
    return values


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean for `sqa.core.significance`: stats = [sum of values, number of values]; undefined where there are none."""

    name: str

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


def means(values: Floats) -> Floats:
    """(n,) values -> (n, 2) statistics of `Mean`."""
    return np.stack([values, np.ones(len(values))], axis=1)


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """Means over questions of several values, for `bootstrap_band`; stats (d + 1,) = the values, then 1."""

    name: str

    def score_many(self, stats: Floats) -> Floats:
        """(B, d + 1) -> (B, d)."""
        return stats[:, :-1] / stats[:, -1:]


def curve_stats(values: Floats) -> Floats:
    """(n, d) values -> (n, d + 1) statistics of `MeanCurve`."""
    return np.hstack([values, np.ones((len(values), 1))])
