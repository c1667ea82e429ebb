"""Dynascore: one number per model, by how much of a metric models give up for a unit of performance.

As published (Ma et al., "Dynaboard", NeurIPS 2021) and as Dynabench computes it:

    u = direction * value + offset                          more is better
    AMRS(metric) = mean |u_i - u_(i-1)| / (p_i - p_(i-1))   over models in order of performance p, only where p differs
                                                            by more than 0.0001 of its largest value
    Dynascore = sum of weight * u / |AMRS|                  weights made to sum to 1

A score says nothing outside the set of models it was made from.  Where the original divides by zero or averages
nothing (one model, equal performances, a metric that is the same for all), this refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sqa.core.errors import ConfigError, NotComputable
from sqa_services.board.metrics import Meta

CUTOFF = 0.0001  # of the largest performance


def dynascore(
    rows: Sequence[Mapping[str, float]], perf: str, weights: Mapping[str, float], metas: Mapping[str, Meta]
) -> list[float]:
    """The Dynascore of each row (metric -> value, all metrics with a weight present), in order."""
    used = {name: weight for name, weight in weights.items() if weight}
    if min(weights.values(), default=0.0) < 0 or not used:
        raise ConfigError("weights: must be >= 0, and one of them above")
    if len(rows) < 2:
        raise NotComputable(f"Dynascore: compares models, needs two or more with all metrics, got {len(rows)}")
    names = [perf, *(name for name in used if name != perf)]
    utility = {
        name: metas[name].utility_direction * np.array([row[name] for row in rows], dtype=np.float64)
        + metas[name].offset
        for name in names
    }  # (models,) each
    order = np.argsort([row[perf] for row in rows], kind="stable")
    change = np.diff(utility[perf][order])  # (models - 1,)
    kept = np.abs(change) > utility[perf].max() * CUTOFF
    if not kept.any():
        raise NotComputable(f"Dynascore: all models have the same {perf}")
    total = np.zeros(len(rows))
    for name, weight in used.items():
        rate = abs(float(np.mean(np.abs(np.diff(utility[name][order]))[kept] / change[kept])))
        if rate == 0:
            raise NotComputable(f"Dynascore: {name} is the same for all models; give it the weight 0")
        total += weight / sum(used.values()) * utility[name] / rate
    return total.tolist()


def parse_weights(text: str, names: Sequence[str]) -> dict[str, float]:
    """ "ew=4,dal=1" -> {"ew": 4.0, "dal": 1.0}; ConfigError lists all problems."""
    weights: dict[str, float] = {}
    problems = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if name not in names:
            problems.append(f"weights: no metric {name!r}; known: {', '.join(names)}")
        elif not 0 <= weight <= 1e6:
            problems.append(f"weights: {name}: expected a number from 0 to 1000000, got {value!r}")
        else:
            weights[name] = weight
    if problems:
        raise ConfigError(problems)
    return weights
