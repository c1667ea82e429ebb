"""What everybody may read.

Single examples: what models are given, and on open data sets answers and what a model did on each.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path, Query
from fastapi.responses import HTMLResponse

from sqa.core.errors import NotComputable
from sqa.report.viewer import policy_of, render
from sqa.report.viewer_data import ViewConfig, traces_data
from sqa_services.board import lifecycle, queue
from sqa_services.board.accounts import Denied
from sqa_services.board.board import Board, NotFound
from sqa_services.board.dynascore import parse_weights
from sqa_services.board.files import data_path, predictions_path, split_prefix
from sqa_services.board.metrics import EVAL, meta_of
from sqa_services.board.routes.shapes import ERRORS, MAX_ID, NAME, CopyName, Name, TaskCode
from sqa_services.board.standing.rank import about_metrics
from sqa_services.board.standing.views import MAIN
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


DataName = Annotated[str, Query(pattern=NAME, description="A data set")]


def add_reading(app: FastAPI, board: Board, guarded: bool) -> None:
    """Tasks, data sets, whether a worker runs; `guarded`: who writes needs a token."""

    descriptions = [
        {
            "code": task.code,
            "input_keys": task.input_keys,
            "perf_metric": task.perf_metric,
            "metrics": about_metrics(task),
            "default_weights": dict(task.default_weights),
        }
        for task in board.tasks.values()
    ]

    @app.get("/api/tasks", responses=ERRORS)
    async def tasks() -> list[dict[str, Any]]:
        """The tasks, their metrics and default weights."""
        return descriptions

    @app.get("/api/status")
    def status() -> dict[str, Any]:
        """How many workers run, how many evaluations wait or are under way, whether who writes needs a token."""
        counted = {"workers": queue.workers(board.engine), "to_do": queue.open_count(board.engine)}
        return {**counted, "guarded": guarded}

    @app.get("/api/tasks/{task}/datasets", responses=ERRORS)
    def datasets(task: TaskCode) -> list[dict[str, Any]]:
        """The data sets of a task."""
        return board.datasets(task)

    @app.get("/api/tasks/{task}/datasets/{name}/examples", responses=ERRORS)
    def examples(task: TaskCode, name: CopyName) -> list[dict[str, Any]]:
        """What models are given: the examples of a data set or of PREFIX-NAME, without the answers."""
        return inputs(board, task, name)

    @app.get("/api/tasks/{task}/datasets/{name}/answers", responses=ERRORS)
    def answers(task: TaskCode, name: CopyName) -> list[dict[str, Any]]:
        """The examples of an open data set with their answers."""
        return with_answers(board, task, name)


def add_standing(app: FastAPI, board: Board) -> None:
    """Evaluations, views, the leaderboard."""

    @app.get("/api/tasks/{task}/evaluations", responses=ERRORS)
    def evaluations(
        task: TaskCode, state: Literal["queued", "running", "done", "failed"] | None = None
    ) -> list[dict[str, Any]]:
        """The evaluations of a task and their results."""
        return board.published(board.evaluations(task, state))

    @app.get("/api/evaluations/{id}", responses=ERRORS)
    def evaluation(id: Annotated[int, Path(ge=1, le=MAX_ID)]) -> dict[str, Any]:
        """One evaluation and its result."""
        for row in board.published([board.evaluation(id)]):
            return row
        raise NotFound(f"no evaluation {id}")

    @app.get("/api/tasks/{task}/views", responses=ERRORS)
    def views(task: TaskCode) -> list[dict[str, Any]]:
        """What the headlines of a task are made of, all versions."""
        return board.views(task)

    @app.get("/api/tasks/{task}/leaderboard", responses=ERRORS)
    def leaderboard(
        task: TaskCode,
        weights: Annotated[str | None, Query(max_length=1000, description="METRIC=WEIGHT,...")] = None,
        dataset: Annotated[list[str], Query(max_length=100)] = [],  # noqa: B006
        view: Annotated[str, Query(pattern=NAME)] = MAIN,
        version: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    ) -> dict[str, Any]:
        """The models of a task, best Dynascore first."""
        parsed = None if weights is None else parse_weights(weights, board.task(task).metrics)
        return board.leaderboard(task, parsed, dataset, view, version, outside=True)


def add_models(app: FastAPI, board: Board) -> None:
    """What is known of a model."""

    @app.get("/api/tasks/{task}/models", responses=ERRORS)
    def models(task: TaskCode) -> list[dict[str, Any]]:
        """The models of a task."""
        return board.models(task)

    @app.get("/api/tasks/{task}/models/{name}/log", responses=ERRORS)
    def log(task: TaskCode, name: Name) -> list[dict[str, Any]]:
        """What happened to a model."""
        return lifecycle.log_of(board.engine, task, name)

    @app.get("/api/tasks/{task}/models/{name}/examples", responses=ERRORS)
    def each(task: TaskCode, name: Name, dataset: DataName) -> list[dict[str, Any]]:
        """What a model did on each example of an open data set, worst first."""
        return each_example(board, task, name, dataset)

    @app.get("/tasks/{task}/models/{name}/view", responses=ERRORS, response_class=HTMLResponse)
    def view(
        task: TaskCode,
        name: Name,
        dataset: DataName,
        example: Annotated[str, Query(min_length=1, max_length=200, description="Its id")],
    ) -> HTMLResponse:
        """One example of an open data set word by word, as `sqa view` shows it."""
        page, policy = viewer_page(board, task, name, dataset, example)
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})
