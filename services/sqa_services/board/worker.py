"""Workers evaluate the queue and score predictions.  Any number of workers may run on one board.

An error in a config or a submission becomes the result of its evaluation.  A bug ends the worker with a traceback, and
the next worker tries again, up to `queue.MAX_ATTEMPTS` times.  Scores cover all examples and each tag; for perturbed
copies, the score is the percentage of unchanged answers.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import Any

from sqa.core import ConfigError, DataError, NotComputable, SqaError, bootstrap
from sqa.files import write_bytes
from sqa.results import defined
from sqa_services.board import queue
from sqa_services.board.board import Board
from sqa_services.board.metrics import Additive, get_accuracy, get_unperturbed_percent, meta_of, metric
from sqa_services.board.rank import alike
from sqa_services.board.storage import as_lines, data_path, model_path, predictions_path, prefixed, stored, stored_lines
from sqa_services.board.task import Example, Response, Task

RESAMPLES = 1000
Labels = Sequence[Mapping[str, Any]]  # results of `Task.label`


def evaluate(task: Task, labels: Labels, predictions: Sequence[Any], seed: int = 0) -> dict[str, Any]:
    """Score predictions in Dynabench's format: perf, perf_std (null), pretty_perf, metadata_json with "perf_by_tag".

    There is one prediction for each label, in order.
    Two keys of metadata_json are not in Dynabench: "intervals" has the 95% intervals of additive metrics, and
    "refusals" has the reasons for missing values.

    Raises:
        NotComputable: The task's `perf_metric` has no value.
    """
    targets = [label["answer"] for label in labels]
    values, refusals = _values(task, predictions, targets)
    if task.perf_metric in refusals:
        raise NotComputable(refusals[task.perf_metric])
    more = {"intervals": _intervals(predictions, targets, values, seed), "refusals": refusals}
    metadata = {**values, "perf_by_tag": _by_tag(task, labels, predictions, seed)}
    metadata |= {name: value for name, value in more.items() if value}
    return {**_perf(task, values), "metadata_json": json.dumps(metadata)}


def predicted(task: Task, labels: Labels, responses: Sequence[Response]) -> list[Any]:
    """Return the prediction for each label, in order.  Responses to unknown ids are ignored.

    Raises DataError if a response is missing (Dynabench logs it and returns {}).
    """
    by_id = {response["id"]: response for response in responses}
    missing = [label["id"] for label in labels if label["id"] not in by_id]
    if missing:
        raise DataError(f"no prediction for {len(missing)} of {len(labels)} examples, the first is {missing[0]!r}")
    return [task.prediction(by_id[label["id"]]) for label in labels]


def _values(task: Task, predictions: Sequence[Any], targets: Sequence[Any]) -> tuple[dict[str, float], dict[str, str]]:
    values, refusals = {}, {}
    for name in task.eval_metrics:
        try:
            values[name] = metric(name)(predictions, targets)
        except NotComputable as refusal:
            refusals[name] = str(refusal)
    return values, refusals


def _perf(task: Task, values: Mapping[str, float]) -> dict[str, Any]:
    """Return the performance and its text with four digits and the unit, or None for both without a value."""
    perf = values.get(task.perf_metric)
    text = None if perf is None else f"{round(perf, 4)} {meta_of(task.perf_metric).unit}".rstrip()
    return {"pretty_perf": text, "perf": perf, "perf_std": None}


def _intervals(
    predictions: Sequence[Any], targets: Sequence[Any], names: Iterable[str], seed: int
) -> dict[str, list[float | None]]:
    intervals: dict[str, list[float | None]] = {}
    for name in names:
        if isinstance(get := metric(name), Additive):
            interval = bootstrap(get.stats(predictions, targets), get.metric, RESAMPLES, seed)
            intervals[name] = [defined(interval.low), defined(interval.high)]
    return intervals


def _by_tag(task: Task, labels: Labels, aligned: Sequence[Any], seed: int) -> list[dict[str, Any]]:
    """Return one entry per tag, in the order in which tags first occur."""
    members: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        for tag in label["tags"]:
            members.setdefault(tag, []).append(index)
    rows, perf = [], task.perf_metric
    for tag, indices in members.items():
        some, targets = [aligned[index] for index in indices], [labels[index]["answer"] for index in indices]
        values, _ = _values(task, some, targets)
        row = {"tag": tag, **_perf(task, values), "perf_dict": values}
        if isinstance(metric(perf), Additive):
            row |= {"n": len(indices), "interval": _intervals(some, targets, {perf} & {*values}, seed).get(perf)}
        rows.append(row)
    return rows


def delta(
    task: Task, prefix: str, labels: Labels, predictions: Sequence[Any], copies: Labels, copied: Sequence[Any]
) -> dict[str, Any]:
    """Compare perturbed copies with originals: return {prefix: unperturbed percent, "metadata_json": JSON text}.

    Args:
        labels: Labels of the original data; `predictions` belong to them.
        copies: Labels of perturbed examples with `input_id` (the original's id) and `transform`; `copied` has the
            predictions for them.
    """
    answers = {label["id"]: task.answer(each) for label, each in zip(labels, predictions, strict=True)}
    same: dict[str, list[bool]] = {}  # transform -> whether the answer stays the same on each copy
    by_input: dict[str, list[Any]] = {id: [] for id in answers}
    for copy, prediction in zip(copies, copied, strict=True):
        after = task.answer(prediction)
        by_input[copy["input_id"]].append(after)
        same.setdefault(copy["transform"], []).append(after == answers[copy["input_id"]])
    percent = get_unperturbed_percent(list(by_input.values()), list(answers.values()), get_accuracy)
    rows = [
        {"transform": transform, "n": len(each), "unperturbed_percent": round(100 * sum(each) / len(each), 2)}
        for transform, each in same.items()
    ]
    return {prefix: percent, "metadata_json": json.dumps({"transforms": rows})}


POLL_SECONDS = 2.0  # maximum seconds between polls of an empty queue


def work(board: Board, until_empty: bool = False, lease_seconds: float = 60.0) -> int:
    """Process the queue until interrupted, and return the number of evaluations that this worker finished.

    With `until_empty`, the worker ends as soon as nothing is queued or running.
    """
    if lease_seconds <= 0:
        raise ConfigError(f"--lease: must be > 0 seconds, got {lease_seconds}")
    finished = 0
    while True:
        claimed = queue.claim(board.database, lease_seconds)
        if claimed is not None:
            finished += _work_at(board, claimed, lease_seconds)
        elif until_empty and not any(queue.to_do(board.database).values()):
            return finished
        else:
            time.sleep(min(POLL_SECONDS, lease_seconds))


def _work_at(board: Board, claimed: queue.Claim, lease_seconds: float) -> bool:
    """Run a leased evaluation; return whether its result was stored."""
    name = f"{claimed.model['name']}, {prefixed(claimed.prefix, claimed.dataset['name'])}"
    print(f"sqa: {name}: started", file=sys.stderr)
    with _repeated(lease_seconds / 3, lambda: queue.renew(board.database, claimed, lease_seconds)):
        try:
            result = run_one(board, claimed.model, claimed.dataset, claimed.prefix)
        except SqaError as error:
            print(f"sqa: {name}: failed: {error}", file=sys.stderr)
            folder = board.config.folder
            problem = str(error).replace(f"{folder.absolute()}/", "").replace(f"{folder}/", "")
            return queue.fail(board.database, claimed, problem)
    taken = queue.finish(board.database, claimed, result)
    print(f"sqa: {name}: {'done' if taken else 'dropped, since its lease expired'}", file=sys.stderr)
    return taken


@contextmanager
def _repeated(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    """Call `action` in a thread every `seconds` until it returns False or the block ends."""
    stop = Event()

    def repeat() -> None:
        while not stop.wait(seconds) and action() is not False:
            pass

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_one(board: Board, model: Mapping[str, Any], data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Run a model on a data set or its perturbed copies, then store and score the responses."""
    code, name = model["task"], model["name"]
    task, read = board.task(code), partial(stored_lines, board.files)
    examples = read(data_path(code, data["name"], prefix))
    file, given = stored(board.files, model_path(code, name, model["kind"])), [{**example} for example in examples]
    responses, job = task.respond(model["kind"], file, given, board.config.work)
    labels, predictions = _scored(task, examples, responses)
    write_bytes(board.files / predictions_path(code, name, data["name"], prefix), as_lines(responses))
    if not prefix:
        result = {**evaluate(task, labels, predictions, data["seed"]), "job": job.values()}
        answers = {label["id"]: task.answer_at(each) for label, each in zip(labels, predictions, strict=True)}
        return {**result, "alike": alike(board.files, model, data["name"], answers)}
    originals = read(data_path(code, data["name"]))
    before = _scored(task, originals, read(predictions_path(code, name, data["name"])))
    return delta(task, prefix, *before, labels, predictions)


def _scored(task: Task, examples: Sequence[Example], responses: Sequence[Response]) -> tuple[Labels, list[Any]]:
    """Verify every response against its example, and return labels and predictions."""
    if len(responses) != len(examples):
        raise DataError(f"the model answered {len(responses)} of {len(examples)} examples")
    for example, response in zip(examples, responses, strict=True):
        task.verify_response(response, example)
    labels = list(map(task.label, examples))
    return labels, predicted(task, labels, responses)
