"""Single examples: what models are given, and on open data sets answers and what a model did on each."""

from __future__ import annotations

from typing import Any

from sqa.core.errors import NotComputable
from sqa.report.viewer import policy_of, render
from sqa.report.viewer_data import ViewConfig, traces_data
from sqa_services.board.accounts import Denied
from sqa_services.board.board import Board, NotFound
from sqa_services.board.files import data_path, predictions_path, split_prefix
from sqa_services.board.metrics import EVAL, meta_of
from sqa_services.board.task import Example, Response, answer_all


def inputs(board: Board, code: str, name: str) -> list[dict[str, Any]]:
    """What models are given of a data set, or of PREFIX-NAME.  Hidden: Denied."""
    examples = board.examples(code, name)
    if _phase(board, code, name) == "hidden":
        raise Denied(f"{name}: is hidden; only what runs here meets it")
    return [board.task(code).inputs(example) for example in examples]


def with_answers(board: Board, code: str, name: str) -> list[dict[str, Any]]:
    """The examples of an open data set, or of PREFIX-NAME, whole.  Not open: Denied."""
    examples = board.examples(code, name)
    _require_open(board, code, name)
    return [dict(example) for example in examples]


def each_example(board: Board, code: str, model: str, dataset: str) -> list[dict[str, Any]]:
    """{"id", "tags", "value", ...} of each example of an open data set, the worst first; `value` of what sorts."""
    task = board.task(code)
    examples, responses = _answered(board, code, model, dataset)
    predictions = answer_all(task, responses, examples)
    get, meta = EVAL[task.perf_metric].get, meta_of(task.perf_metric)
    rows = []
    for example, response, prediction in zip(examples, responses, predictions, strict=True):
        label = task.data.label_field_converter(example)
        try:
            value: float | None = get([prediction["pred"]], [label["answer"]])
        except NotComputable:
            value = None
        rows.append({"id": label["id"], "tags": label["tags"], "value": value, **task.shown(example, response)})
    return sorted(rows, key=lambda row: (row["value"] is not None, meta.utility_direction * (row["value"] or 0.0)))


def viewer_page(board: Board, code: str, model: str, dataset: str, example: str) -> tuple[str, str]:
    """One example of an open data set as the page of `sqa view`, and the policy that lets its script run."""
    task = board.task(code)
    if task.traces is None:
        raise NotFound(f"{code}: its examples are not translated word by word")
    examples, responses = _answered(board, code, model, dataset)
    chosen = [index for index, row in enumerate(examples) if row["id"] == example]
    if not chosen:
        raise NotFound(f"{dataset}: has no example {example!r}")
    [trace] = task.traces([examples[chosen[0]]], [responses[chosen[0]]])
    page = render(traces_data([trace], model, ViewConfig()))
    return page, policy_of()


def _answered(board: Board, code: str, model: str, dataset: str) -> tuple[list[Example], list[Response]]:
    """The examples of an open data set and a model's responses.  Not scored there: NotFound; not open: Denied."""
    if dataset not in [row["name"] for row in board.datasets(code)]:
        raise NotFound(f"no data set {dataset!r}")
    _require_open(board, code, dataset)
    done = [
        e for e in board.evaluations(code, "done") if (e["model"], e["dataset"], e["prefix"]) == (model, dataset, "")
    ]
    if not done:
        raise NotFound(f"{model!r}: is not scored on {dataset}")
    examples = board.files.read_lines(data_path(code, dataset))
    responses = board.files.read_lines(predictions_path(code, model, dataset))
    return list(examples), list(responses)


def _phase(board: Board, code: str, name: str) -> str:
    phases = {row["name"]: row["phase"] for row in board.datasets(code)}
    base, _ = split_prefix(name, phases)
    return phases[base]


def _require_open(board: Board, code: str, name: str) -> None:
    if (phase := _phase(board, code, name)) != "open":
        raise Denied(f"{name}: is {phase}; its answers do not leave the board")
