"""Rank of models: weighted metrics.

rank      place by Dynascore, or by performance if there is no Dynascore; equal scores share a place
note      "copy of NAME" for a copy of another submission, which has no rank
interval  95% interval of the performance on the data set, or None for several data sets

A copy is a submission that answers a data set like a model that was registered earlier.  Each evaluation on original
data stores digests of its answers, which stay when the model is deleted.  The later one of two alike models is the
copy, whichever was evaluated first.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sqa.core import ConfigError, NotComputable
from sqa.files import bytes_digest, parse_json, write_bytes
from sqa_services.board.metrics import Meta, meta_of
from sqa_services.board.task import Task

VERSION = 6
CUTOFF = 0.0001  # minimum difference in performance, as a share of the largest performance
SHARE, FEWEST = 0.95, 10  # minimum share of equal answers of a copy; minimum number of questions
STANDING = ("dynascore", "rank", "interval")  # columns of a row that are null until computed
Row = dict[str, Any]  # row of the leaderboard
Rows = Sequence[Mapping[str, Any]]  # rows of the database
Weights = Mapping[str, float]  # weights of metrics


def rank(task: Task, models: Rows, done: Rows, of_data: Sequence[str], weights: Weights) -> dict[str, Any]:
    """Return the rows of a leaderboard, best first, and the reason for a missing Dynascore."""
    values = _values(done)
    needed = dict.fromkeys((task.perf_metric, *(metric for metric, weight in weights.items() if weight)))
    rows, copied = list[Row](), originals(models, done, of_data)
    for model in models:
        means = _means(task, [values.get((model["name"], data), {}) for data in of_data])
        about = {key: model[key] for key in ("kind", "created")} | {"run_here": model["kind"] == "config"}
        missing, standing = [metric for metric in needed if metric not in means], dict.fromkeys(STANDING)
        if len(of_data) == 1 and not missing:
            standing["interval"] = values[model["name"], of_data[0]]["intervals"].get(task.perf_metric)
        about["note"] = f"copy of {copied[model['name']]}" if model["name"] in copied else ""
        rows.append({"model": model["name"], **about, "metrics": means, "missing": missing, **standing})
    ranked, refusal = [row for row in rows if not row["missing"] and not row["note"]], None
    try:
        metas = {name: meta_of(name) for name in task.metrics}
        scores = dynascore([row["metrics"] for row in ranked], task.perf_metric, weights, metas)
        for row, score in zip(ranked, scores, strict=True):
            row["dynascore"] = score
    except NotComputable as error:
        refusal = str(error)
    places = sorted(_order(row, task) for row in ranked)
    for row in ranked:
        row["rank"] = places.index(_order(row, task)) + 1
    rows.sort(key=lambda row: _order(row, task))
    return {"refusal": refusal, "rows": rows}


def _means(task: Task, on_each: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean over data sets of each metric that every data set has."""
    return {
        metric: sum(values[metric] for values in on_each) / len(on_each)
        for metric in task.metrics
        if on_each and all(metric in values for values in on_each)
    }


def _values(done: Rows) -> dict[tuple[str, str], dict[str, Any]]:
    """Return a dict that maps (model, data set) to its metrics, and their "intervals", from all prefixes."""
    by_pair: dict[tuple[str, str], dict[str, Any]] = {}
    for row in done:
        values = by_pair.setdefault((row["model"], row["dataset"]), {})
        if row["prefix"]:
            values[row["prefix"]] = row["result"][row["prefix"]]
        else:
            metadata = parse_json(row["result"]["metadata_json"])
            values |= {name: value for name, value in metadata.items() if isinstance(value, int | float)}
            values |= row["result"]["job"] | {"intervals": metadata.get("intervals", {})}
    return by_pair


def _order(row: Mapping[str, Any], task: Task) -> tuple[bool, float, bool, float]:
    """Return a row's sort key: by Dynascore, then by performance."""
    score, perf = row["dynascore"], row["metrics"].get(task.perf_metric)
    direction = meta_of(task.perf_metric).utility_direction
    return (score is None, -(score or 0.0), perf is None, -direction * (perf or 0.0))


def about_metrics(task: Task) -> dict[str, dict[str, Any]]:
    """Return a dict that maps each metric to the fields of its `Meta`."""
    return {name: asdict(meta_of(name)) for name in task.metrics}


# ----------------------------------------------------------------------------------------------------------- copies


def alike(files: Path, model: Mapping[str, Any], dataset: str, answers: Mapping[str, Any]) -> list[list[Any]]:
    """Store a model's answers by question, and return its pairs with models that answer alike.

    A pair is the earlier model and the later one, each as [time of registration, name].
    """
    if len(answers) < FEWEST or None in answers.values():
        return []
    own = [model["created"], model["name"]]
    mine = {bytes_digest(json.dumps(answer).encode())[:16] for answer in answers.items()}
    path = files / f"answers/{model['task']}/{dataset}/{model['created']}-{model['name']}.json"
    write_bytes(path, json.dumps({"model": own, "answers": sorted(mine)}).encode())
    others = [parse_json(file.read_bytes()) for file in path.parent.glob("*.json")]
    same = [other["model"] for other in others if len(mine.intersection(other["answers"])) >= SHARE * len(answers)]
    return [sorted([own, other]) for other in same if other != own]


def originals(models: Rows, done: Rows, of_data: Sequence[str]) -> dict[str, str]:
    """Return a dict that maps each copy to the first model with its answers on one of the data sets.

    A config is never a copy, because the board runs it.  A model is not a copy of a former model of its own name.
    """
    first: dict[tuple[Any, ...], list[Any]] = {}
    for row in done:
        for original, copy in row["result"].get("alike", ()) if row["dataset"] in of_data else ():
            first[tuple(copy)] = min(original, first.get(tuple(copy), original))
    submitted = [(model["created"], model["name"]) for model in models if model["kind"] == "submission"]
    return {key[1]: first[key][1] for key in submitted if key in first and first[key][1] != key[1]}


# -------------------------------------------------------------------------------------------------------- Dynascore


def dynascore(
    rows: Sequence[Mapping[str, float]], perf: str, weights: Mapping[str, float], metas: Mapping[str, Meta]
) -> list[float]:
    """Return the Dynascore of each row; a row maps metrics to values and has every weighted metric.

    Formula of Ma et al. ("Dynaboard", NeurIPS 2021) as implemented in Dynabench:

        u = direction * value + offset                          more is better
        AMRS(metric) = mean |u_i - u_(i-1)| / (p_i - p_(i-1))   over models in order of performance p, only where p
                                                                differs by more than 0.0001 of its largest value
        Dynascore = sum of weight * u / |AMRS|                  weights are normalised to sum to 1

    Scores are comparable only within one set of models.

    Raises:
        NotComputable: Dynabench would divide by zero or average nothing: there is one model, all performances are
            equal, or all models have the same value of a metric.
    """
    used = {name: weight for name, weight in weights.items() if weight}
    if min(weights.values(), default=0.0) < 0 or not used:
        raise ConfigError("weights: must be >= 0, and at least one > 0")
    if len(rows) < 2:
        raise NotComputable(f"Dynascore: needs at least two models with all metrics, got {len(rows)}")
    names = [perf, *(name for name in used if name != perf)]
    utility = {
        name: metas[name].utility_direction * np.array([row[name] for row in rows], dtype=np.float64)
        + metas[name].offset
        for name in names
    }  # (models,) per metric
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
    """Parse "ew=4,dal=1" into {"ew": 4.0, "dal": 1.0}.  Raises ConfigError with all problems."""
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
