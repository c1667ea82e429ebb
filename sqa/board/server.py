"""The board over HTTP (FastAPI): a page at /, JSON below /api, its description at /openapi.json.

    GET /api/tasks                                    GET /api/tasks/TASK/leaderboard?weights=ew=4,dal=1&dataset=NAME
    GET /api/tasks/TASK/datasets                      PUT /api/tasks/TASK/datasets/NAME    {"questions": [...], ...}
    GET /api/tasks/TASK/datasets/NAME/examples        (what models are given; NAME may be PREFIX-NAME)
    GET /api/tasks/TASK/models                        PUT /api/tasks/TASK/models/NAME      a submission, JSON lines
    GET /api/tasks/TASK/evaluations?state=done        GET /api/evaluations/ID

Models that come over HTTP are submissions: a run's config can start programs, so configs are registered where the
board is.  Likewise a data set is a question set by name that is here already, or questions in the request; never a
path.  Bound beyond loopback, whatever writes needs the token; on loopback, requests for other host names are refused,
so that a page in a browser cannot reach the board under a name of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from sqa.board.board import Board, NotFound, Taken
from sqa.board.dynascore import parse_weights
from sqa.board.metrics import meta_of
from sqa.core.errors import ConfigError, DataError, SqaError
from sqa.data.datasets import available, question_sets
from sqa.data.perturb import PERTURBATIONS
from sqa.net.address import Names, address_problems, is_loopback
from sqa.net.guard import Guard

NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"
PREFIXED = r"^[a-z0-9][a-z0-9-]{0,125}$"
MAX_ID = 2**31 - 1
PAGE = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request is wrong", "content": {"application/json": {}}},
    401: {"description": "A token is needed", "content": {"application/json": {}}},
    404: {"description": "There is no such thing", "content": {"application/json": {}}},
    409: {"description": "The name is in use already", "content": {"application/json": {}}},
    413: {"description": "The body is too large", "content": {"application/json": {}}},
}

TaskCode = Annotated[str, Path(pattern=NAME, examples=["sqa-es"])]
Name = Annotated[str, Path(pattern=NAME, examples=["mini"])]
CopyName = Annotated[str, Path(pattern=PREFIXED, examples=["robustness-mini"])]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """How the server answers."""

    host: str = "127.0.0.1"
    port: int = 12380
    token: str | None = None
    max_body: int = 1 << 24  # bytes
    names: tuple[str, ...] = ()  # host names by which it may be asked, beside this machine's; beyond loopback none: any

    def __post_init__(self) -> None:
        wrong = address_problems(self.host, self.port, self.token)
        if self.max_body < 1:
            wrong.append("--max-body: must be at least 1")
        if wrong:
            raise ConfigError(wrong)

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


class NewQuestion(BaseModel):
    """A question as in a file of your own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(min_length=1, max_length=200)]
    source: Annotated[list[Text], Field(min_length=1, max_length=200, description="Sentences")]
    reference: Annotated[list[Text], Field(min_length=1, max_length=200, description="English sentences")]
    page: Text
    language: Annotated[str, Field(pattern="^[a-z]{2}$")]


class NewDataset(BaseModel):
    """A question set by name, or questions."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: Annotated[str | None, Field(max_length=63, description=f"One of {', '.join(question_sets())}")] = None
    questions: Annotated[list[NewQuestion] | None, Field(min_length=1, max_length=10_000)] = None
    # the names are known at run time only, where the request's schema is made
    perturbations: Annotated[list[Literal[tuple(PERTURBATIONS)]], Field(max_length=len(PERTURBATIONS))] = []  # type: ignore[valid-type]
    seed: Annotated[int, Field(ge=0, le=MAX_ID)] = 0


class Ascii(JSONResponse):
    """JSON in ASCII: half a surrogate pair in a request cannot break the answer to it."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def serve(board: Board, config: ServeConfig) -> None:
    """Serve until interrupted."""
    from sqa.net.connections import run_app

    print(f"sqa: the board is at http://{config.host}:{config.port}", file=sys.stderr)
    run_app(make_app(board, config), config.host, config.port)


def make_app(board: Board, config: ServeConfig) -> FastAPI:
    """The application on a board."""
    app = FastAPI(
        title="SQA evaluation board", version="1", docs_url=None, redoc_url=None, default_response_class=Ascii
    )
    app.add_exception_handler(SqaError, _deliberate)
    app.add_exception_handler(RequestValidationError, _invalid)
    _reading(app, board)
    _writing(app, board)
    for route, (name, kind) in PAGE.items():
        app.add_api_route(route, _static(name, kind), include_in_schema=False)
    names = Names.of(config.host, config.names)
    app.add_middleware(Guard, token=config.token, max_body=config.max_body, names=names, headers=HEADERS)
    return app


async def _deliberate(_: Request, error: Exception) -> Response:
    """4xx for what the request got wrong."""
    status = 409 if isinstance(error, Taken) else 404 if isinstance(error, NotFound) else 400
    return Ascii({"detail": str(error)}, status)


async def _invalid(_: Request, error: Exception) -> Response:
    """422 that says where and what, without the input."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    return Ascii({"detail": [{"loc": list(e["loc"]), "msg": e["msg"], "type": e["type"]} for e in found]}, 422)


def _static(name: str, kind: str) -> Any:
    body = (files("sqa.board") / "page" / name).read_text(encoding="utf-8")

    async def page() -> Response:
        return Response(body, media_type=kind)

    return page


def _known(board: Board, task: str) -> None:
    if task not in board.tasks:
        raise NotFound(f"no task {task!r}; known: {', '.join(board.tasks)}")


def _reading(app: FastAPI, board: Board) -> None:
    @app.get("/api/tasks", responses=ERRORS)
    def tasks() -> list[dict[str, Any]]:
        """The tasks, their metrics and default weights."""
        return [
            {
                "code": task.code,
                "input_keys": task.input_keys,
                "perf_metric": task.perf_metric,
                "metrics": {name: asdict(meta_of(name)) for name in task.metrics},
                "default_weights": dict(task.default_weights),
            }
            for task in board.tasks.values()
        ]

    @app.get("/api/tasks/{task}/datasets", responses=ERRORS)
    def datasets(task: TaskCode) -> list[dict[str, Any]]:
        """The data sets of a task."""
        _known(board, task)
        return board.datasets(task)

    @app.get("/api/tasks/{task}/datasets/{name}/examples", responses=ERRORS)
    def examples(task: TaskCode, name: CopyName) -> list[dict[str, Any]]:
        """What models are given: the examples of a data set or of PREFIX-NAME, without the answers."""
        _known(board, task)
        return [board.task(task).inputs(example) for example in board.examples(task, name)]

    @app.get("/api/tasks/{task}/models", responses=ERRORS)
    def models(task: TaskCode) -> list[dict[str, Any]]:
        """The models of a task."""
        _known(board, task)
        return board.models(task)

    @app.get("/api/tasks/{task}/evaluations", responses=ERRORS)
    def evaluations(
        task: TaskCode, state: Literal["queued", "running", "done", "failed"] | None = None
    ) -> list[dict[str, Any]]:
        """The evaluations of a task and their results."""
        _known(board, task)
        return board.evaluations(task, state)

    @app.get("/api/evaluations/{id}", responses=ERRORS)
    def evaluation(id: Annotated[int, Path(ge=1, le=MAX_ID)]) -> dict[str, Any]:
        """One evaluation and its result."""
        return board.evaluation(id)

    @app.get("/api/tasks/{task}/leaderboard", responses=ERRORS)
    def leaderboard(
        task: TaskCode,
        weights: Annotated[str | None, Query(max_length=1000, description="METRIC=WEIGHT,...")] = None,
        dataset: Annotated[list[str], Query(max_length=100)] = [],  # noqa: B006
    ) -> dict[str, Any]:
        """The models of a task, best Dynascore first."""
        _known(board, task)
        parsed = None if weights is None else parse_weights(weights, board.task(task).metrics)
        return board.leaderboard(task, parsed, dataset)


def _writing(app: FastAPI, board: Board) -> None:
    @app.put("/api/tasks/{task}/datasets/{name}", status_code=201, responses=ERRORS)
    def put_dataset(task: TaskCode, name: Name, new: NewDataset) -> dict[str, Any]:
        """Register a data set; every model of the task is queued on it."""
        _known(board, task)
        if (new.source is None) == (new.questions is None):
            raise HTTPException(400, "give source or questions")
        if new.source is not None:
            here = [source for source in question_sets() if available(source)]
            if new.source not in here:
                raise HTTPException(400, f"source: one that is here already: {', '.join(here)}")
            return board.register_dataset(task, name, new.source, new.perturbations, new.seed)
        return _of_questions(board, task, name, new)

    @app.put(
        "/api/tasks/{task}/models/{name}",
        status_code=201,
        responses=ERRORS,
        openapi_extra={
            "requestBody": {
                "required": True,
                "description": "A submission: one JSON object a line, see `sqa validate sqa --schema`",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        },
    )
    async def put_model(task: TaskCode, name: Name, request: Request) -> dict[str, Any]:
        """Register a submission; it is queued on every data set of the task."""
        from starlette.concurrency import run_in_threadpool

        _known(board, task)
        body = await request.body()
        return await run_in_threadpool(board.register_model, task, name, "submission", body)


def _of_questions(board: Board, task: str, name: str, new: NewDataset) -> dict[str, Any]:
    """Register questions of a request; a problem names their data set, not where they lay meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        path = FilePath(folder, f"{name}.jsonl")
        path.write_text("".join(json.dumps(q.model_dump()) + "\n" for q in new.questions or ()), encoding="utf-8")
        try:
            return board.register_dataset(task, name, str(path), new.perturbations, new.seed)
        except (Taken, NotFound):
            raise
        except SqaError as error:
            raise DataError(str(error).replace(f"{folder}/", "")) from error
