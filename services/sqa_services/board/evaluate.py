"""Scores of predictions over all examples and by tag, and their differences under perturbation."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqa.core.differences import compare
from sqa.core.errors import DataError, NotComputable
from sqa.core.significance import bootstrap
from sqa.core.types import Floats
from sqa.results import defined
from sqa_services.board.metrics import Additive, additive, get_accuracy, get_unperturbed_percent, metric, pretty
from sqa_services.board.task import Task

RESAMPLES = 1000
Labels = Sequence[Mapping[str, Any]]  # results of `Task.label`
Predicted = Sequence[Mapping[str, Any]]  # results of `answer_all`


def evaluate(task: Task, labels: Labels, predictions: Predicted, seed: int = 0) -> dict[str, Any]:
    """Score predictions in Dynabench's format: perf, perf_std (null), pretty_perf, metadata_json with "perf_by_tag".

    Two keys of metadata_json are not in Dynabench: "intervals" has the 95% intervals of additive metrics, and
    "refusals" has the reasons for missing values.  Predictions for unknown ids are ignored.

    Raises:
        DataError: A prediction is missing (Dynabench logs it and returns {}).
        NotComputable: The task's `perf_metric` has no value.
    """
    examples = Examples(align(labels, predictions), [label["answer"] for label in labels], {})
    everything = range(len(labels))
    values, refusals = _values(task, examples, everything)
    if task.perf_metric in refusals:
        raise NotComputable(refusals[task.perf_metric])
    more = {"intervals": _intervals(examples, everything, values, seed), "refusals": refusals}
    metadata = {**values, "perf_by_tag": _by_tag(task, labels, examples, seed)}
    metadata |= {name: value for name, value in more.items() if value}
    return {**_perf(task, values), "metadata_json": json.dumps(metadata)}


def align(labels: Labels, predictions: Predicted) -> list[Any]:
    """Return the prediction of each label, in order."""
    by_id = {prediction["id"]: prediction["pred"] for prediction in predictions}
    missing = [label["id"] for label in labels if label["id"] not in by_id]
    if missing:
        raise DataError(f"no prediction for {len(missing)} of {len(labels)} examples, the first is {missing[0]!r}")
    return [by_id[label["id"]] for label in labels]


@dataclass(frozen=True, slots=True)
class Examples:
    """Predictions and targets; the statistics of each example are computed only once."""

    predictions: Sequence[Any]
    targets: Sequence[Any]
    rows: dict[str, Floats | None]  # additive metric -> statistics of shape (n, d), or None if an example has none

    def subset(self, indices: Sequence[int]) -> tuple[list[Any], list[Any]]:
        """Return the predictions and targets of some examples."""
        return [self.predictions[index] for index in indices], [self.targets[index] for index in indices]

    def stats(self, name: str, get: Additive, indices: Sequence[int]) -> Floats:
        """Return the statistics of some examples, of shape (n, d).  Raises NotComputable if an example has none."""
        if name not in self.rows:
            try:
                self.rows[name] = get.stats(self.predictions, self.targets)
            except NotComputable:
                self.rows[name] = None
        rows = self.rows[name]
        return get.stats(*self.subset(indices)) if rows is None else rows[list(indices)]

    def value(self, name: str, indices: Sequence[int]) -> float:
        """Return the value of a metric over some examples."""
        get = additive(name)
        if get is None:
            return metric(name)(*self.subset(indices))
        return get.metric.score(self.stats(name, get, indices).sum(axis=0))


def _values(task: Task, examples: Examples, indices: Sequence[int]) -> tuple[dict[str, float], dict[str, str]]:
    values, refusals = {}, {}
    for name in task.eval_metrics:
        try:
            values[name] = examples.value(name, indices)
        except NotComputable as refusal:
            refusals[name] = str(refusal)
    return values, refusals


def _perf(task: Task, values: Mapping[str, float]) -> dict[str, Any]:
    perf = values[task.perf_metric]
    return {"perf": perf, "perf_std": None, "pretty_perf": pretty(task.perf_metric, perf)}


def _intervals(
    examples: Examples, indices: Sequence[int], names: Iterable[str], seed: int
) -> dict[str, list[float | None]]:
    intervals: dict[str, list[float | None]] = {}
    for name in names:
        if get := additive(name):
            interval = bootstrap(examples.stats(name, get, indices), get.metric, RESAMPLES, seed)
            intervals[name] = [defined(interval.low), defined(interval.high)]
    return intervals


def _by_tag(task: Task, labels: Labels, examples: Examples, seed: int) -> list[dict[str, Any]]:
    """Return one entry per tag, in the order in which tags first occur."""
    members: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        for tag in label["tags"]:
            members.setdefault(tag, []).append(index)
    rows, perf = [], task.perf_metric
    for tag, indices in members.items():
        values, _ = _values(task, examples, indices)
        row: dict[str, Any] = {"tag": tag, "pretty_perf": None, "perf": None, "perf_std": None, "perf_dict": values}
        if perf in values:
            row.update(_perf(task, values))
        if additive(perf):
            row |= {"n": len(indices), "interval": _intervals(examples, indices, {perf} & {*values}, seed).get(perf)}
        rows.append(row)
    return rows


def delta(
    task: Task,
    prefix: str,
    labels: Labels,
    predictions: Predicted,
    copies: Labels,
    copied: Predicted,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare perturbed copies with originals: return {prefix: unperturbed percent, "metadata_json": JSON text}.

    A difference is the value on perturbed data minus the value on original data, paired over the changed examples.

    Args:
        labels: Labels of the original data; `predictions` belong to them.
        copies: Labels of perturbed examples with `input_id` (the original's id) and `transform`; `copied` has the
            predictions for them.
    """
    original = dict(zip((label["id"] for label in labels), align(labels, predictions), strict=True))
    answers = {label["id"]: label["answer"] for label in labels}
    groups: dict[str, list[tuple[Mapping[str, Any], Any]]] = {}  # transform -> copies and their predictions
    by_input: dict[str, list[Any]] = {id: [] for id in original}
    for copy, after in zip(copies, align(copies, copied), strict=True):
        groups.setdefault(copy["transform"], []).append((copy, after))
        by_input[copy["input_id"]].append(task.answer(after))
    unperturbed = [task.answer(pred) for pred in original.values()]
    percent = get_unperturbed_percent(list(by_input.values()), unperturbed, get_accuracy)
    rows = []
    for transform, pairs in groups.items():
        changed, after = [copy for copy, _ in pairs], [pred for _, pred in pairs]
        before = [original[copy["input_id"]] for copy in changed]
        same = [task.answer(a) == task.answer(b) for a, b in zip(after, before, strict=True)]
        targets = ([copy["answer"] for copy in changed], [answers[copy["input_id"]] for copy in changed])
        share, differences = round(100 * sum(same) / len(same), 2), _differences(task, after, before, *targets, seed)
        rows.append({"transform": transform, "n": len(same), "unperturbed_percent": share, "differences": differences})
    return {prefix: percent, "metadata_json": json.dumps({"transforms": rows})}


def _differences(
    task: Task, after: Sequence[Any], before: Sequence[Any], changed: Sequence[Any], targets: Sequence[Any], seed: int
) -> dict[str, Any]:
    """Return a dict that maps each metric to the paired comparison, or to the reason why there is none."""
    differences: dict[str, Any] = {}
    for name in task.difference_metrics:
        try:
            if (get := additive(name)) is None:
                raise NotComputable(f"{name} is not additive over examples, so it has no paired difference")
            comparison = compare(get.stats(after, changed), get.stats(before, targets), get.metric, RESAMPLES, seed)
            differences[name] = {key: defined(value) for key, value in asdict(comparison).items()}
        except NotComputable as refusal:
            differences[name] = {"refusal": str(refusal)}
    return differences
