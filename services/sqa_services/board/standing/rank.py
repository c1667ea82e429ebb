"""The rank: what was measured, weighed by a view, with intervals; what is implausible stands below it, with reasons.

    rank      place by Dynascore (by performance where there is none), equal scores share it
    interval  95%, of the performance, by resampling examples within each data set
    places    [first, last] place by performance: 1 + those surely better, all - those surely worse; "surely": the 95%
              interval of the paired difference, over the same resampled examples, leaves out 0

What is implausible or withdrawn has no rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from sqa.core.errors import NotComputable
from sqa.core.types import Floats
from sqa.files.records import parse_json
from sqa_services.board.metrics import EVAL, Additive, Meta, meta_of
from sqa_services.board.standing.dynascore import dynascore
from sqa_services.board.task import RUN_HERE, Task

VERSION = 2
RESAMPLES = 1000
Row = dict[str, Any]
Details = Callable[[Sequence[int]], Mapping[int, Any]]  # evaluation ids -> the examples' statistics
Standing = tuple[list[list[float]], list[list[int]]]  # intervals and places, by row


class StandingCache(dict[Any, Standing]):
    """Intervals and places that were computed; by what they are made of, which does not change."""

    MOST = 64

    def keep(self, key: Any, value: Standing) -> Standing:
        """Remember a value; those before are forgotten when there are many."""
        if len(self) >= self.MOST:
            self.clear()
        self[key] = value
        return value


def rank(
    task: Task,
    models: Sequence[Mapping[str, Any]],
    done: Sequence[Mapping[str, Any]],
    data_weights: Mapping[str, float],
    weights: Mapping[str, float],
    details: Details,
    cache: StandingCache,
) -> dict[str, Any]:
    """The rows of a leaderboard, best first, and the reason for a missing Dynascore."""
    values, marks, ids = _values(done), _marks(models, done, data_weights), _ids(done)
    rows = [_row(task, model, data_weights, values, marks, weights) for model in models]
    ranked = [row for row in rows if not row["missing"] and not row["implausible"]]
    refusal = None
    try:
        metas = {name: meta_of(name) for name in task.metrics}
        scores: list[float | None] = [*dynascore([row["metrics"] for row in ranked], task.perf_metric, weights, metas)]
    except NotComputable as error:
        refusal, scores = str(error), [None] * len(ranked)
    for row, score in zip(ranked, scores, strict=True):
        row["dynascore"] = score
    _add_places(task, ranked, data_weights, ids, details, cache)
    rows.sort(key=lambda row: _order(row, task))
    best = [row for row in rows if not row["missing"] and not row["implausible"]]
    for index, row in enumerate(best):
        same = index and _order(best[index - 1], task) == _order(row, task)
        row["rank"] = best[index - 1]["rank"] if same else index + 1
    return {"refusal": refusal, "rows": rows}


def _row(
    task: Task,
    model: Mapping[str, Any],
    data_weights: Mapping[str, float],
    values_on: Mapping[tuple[str, str], Mapping[str, float]],
    marks: Mapping[str, list[str]],
    weights: Mapping[str, float],
) -> Row:
    """The weighted mean over data sets of each metric that all of them have."""
    name = model["name"]
    on_each = [(values_on.get((name, data), {}), weight) for data, weight in data_weights.items()]
    total = sum(data_weights.values())
    means = {
        metric: sum(values[metric] * weight for values, weight in on_each) / total
        for metric in task.metrics
        if on_each and all(metric in values for values, _ in on_each)
    }
    needed = (task.perf_metric, *(metric for metric, weight in weights.items() if weight))
    missing = [metric for metric in dict.fromkeys(needed) if metric not in means]
    about = {key: model[key] for key in ("kind", "owner", "created")} | {"run_here": model["kind"] in RUN_HERE}
    standing = {"dynascore": None, "rank": None, "interval": None, "places": None}
    return {"model": name, **about, "metrics": means, "missing": missing, "implausible": marks[name], **standing}


def _values(done: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, float]]:
    """(model, data set) -> metric -> value, from the results of all prefixes."""
    by_pair: dict[tuple[str, str], dict[str, float]] = {}
    for row in done:
        values = by_pair.setdefault((row["model"], row["dataset"]), {})
        if row["prefix"]:
            values[row["prefix"]] = row["result"][row["prefix"]]
        else:
            metadata = parse_json(row["result"]["metadata_json"])
            values |= {name: value for name, value in metadata.items() if isinstance(value, int | float)}
            values |= row["result"]["job"]
    return by_pair


def _marks(
    models: Sequence[Mapping[str, Any]], done: Sequence[Mapping[str, Any]], data_weights: Mapping[str, float]
) -> dict[str, list[str]]:
    """model -> why it is implausible on these data sets; a file with the answers of an earlier one is, too."""
    marks: dict[str, list[str]] = {model["name"]: [] for model in models}
    about = {model["name"]: model for model in models}
    first: dict[tuple[str, str], str] = {}  # (data set, digest) -> the first model with these answers
    for row in sorted(done, key=lambda row: about[row["model"]]["id"] if row["model"] in about else 0):
        if row["dataset"] not in data_weights or row["model"] not in about:
            continue
        result, name = row["result"], row["model"]
        where = f"{row['prefix']}-{row['dataset']}" if row["prefix"] else row["dataset"]
        marks[name] += [f"{where}: {reason}" for reason in result["implausible"]]
        if row["prefix"]:
            continue
        earlier = first.setdefault((row["dataset"], result["digest"]), name)
        same_owner = about[earlier]["owner"] == about[name]["owner"]
        if earlier != name and not same_owner and about[name]["kind"] not in RUN_HERE:
            marks[name].append(f"{where}: has the answers of {earlier}, to the letter")
    return marks


def _ids(done: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[int, float | None]]:
    return {(row["model"], row["dataset"]): (row["id"], row["finished"]) for row in done if not row["prefix"]}


def _add_places(
    task: Task,
    ranked: Sequence[Row],
    data_weights: Mapping[str, float],
    ids: Mapping[tuple[str, str], tuple[int, float | None]],
    details: Details,
    cache: StandingCache,
) -> None:
    """Write `interval` and `places` into the rows, if the metric that sorts is a sum over examples."""
    get = EVAL[task.perf_metric].get
    if not isinstance(get, Additive) or not ranked:
        return
    evaluations = {data: [ids[row["model"], data] for row in ranked] for data in data_weights}
    key = (task.code, tuple(data_weights.items()), tuple(map(tuple, evaluations.values())))
    if key not in cache:
        stats = details([id for pairs in evaluations.values() for id, _ in pairs])
        if not all(id in stats for pairs in evaluations.values() for id, _ in pairs):
            return
        on_each = [np.array([stats[id] for id, _ in evaluations[data]], dtype=np.float64) for data in data_weights]
        cache.keep(key, _standing(on_each, list(data_weights.values()), get, meta_of(task.perf_metric)))
    intervals, places = cache[key]
    for row, interval, place in zip(ranked, intervals, places, strict=True):
        row["interval"], row["places"] = interval, place


def _standing(on_each: Sequence[Floats], weights: Sequence[float], get: Additive, meta: Meta) -> Standing:
    """Of the statistics on each data set, (models, n, d): intervals and places, by model."""
    parts = zip(on_each, weights, strict=True)
    each = [weight / sum(weights) * _resampled(stats, get) for stats, weight in parts]
    samples = np.sum(each, axis=0)  # (models, RESAMPLES)
    ends = np.nanpercentile(samples, [2.5, 97.5], axis=1).T  # (models, 2)
    places = []
    for sample in samples:
        low, high = np.nanpercentile(meta.utility_direction * (samples - sample), [2.5, 97.5], axis=1)
        places.append([1 + int((low > 0).sum()), len(samples) - int((high < 0).sum())])
    return ends.tolist(), places


def _resampled(stats: Floats, get: Additive) -> Floats:
    """(models, n, d) -> (models, RESAMPLES): the metric of examples drawn with replacement, the same for all models."""
    n = stats.shape[1]
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # (RESAMPLES, n)
    return np.stack([get.metric.score_many(drawn @ rows) for rows in stats])


def _order(row: Mapping[str, Any], task: Task) -> tuple[bool, bool, float, bool, float]:
    """Best Dynascore first, then those without one by performance, then what is implausible."""
    score, perf = row["dynascore"], row["metrics"].get(task.perf_metric)
    direction = meta_of(task.perf_metric).utility_direction
    return (bool(row["implausible"]), score is None, -(score or 0.0), perf is None, -direction * (perf or 0.0))


def about_metrics(task: Task) -> dict[str, dict[str, Any]]:
    """metric -> its unit, name and direction."""
    return {name: asdict(meta_of(name)) for name in task.metrics}
