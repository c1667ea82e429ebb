"""The board over HTTP (FastAPI): a page at /, JSON below /api, its description at /openapi.json.

    GET /api/tasks                                    GET /api/tasks/TASK/leaderboard?weights=ew=4,dal=1&dataset=NAME
    GET /api/tasks/TASK/datasets
    GET /api/tasks/TASK/datasets/NAME/examples        (the inputs of models; NAME may be PREFIX-NAME)
    GET /api/tasks/TASK/models                        PUT /api/tasks/TASK/models/NAME      a submission, JSON lines
    POST /api/tasks/TASK/models/NAME/requeue          DELETE /api/tasks/TASK/models/NAME
    GET /api/tasks/TASK/evaluations?state=done
    GET /api/status, /api/me

Models uploaded over HTTP are submissions.  Configs can start programs, so only `sqa board` registers them.  It also
registers and perturbs data sets.  Beyond loopback, submissions need the owners' or the submitters' token, and all other
writes need the owners' token.  On loopback, requests for other host names are refused (DNS rebinding).
"""

import json
from functools import partial
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from sqa.core import SqaError
from sqa_services.board import queue
from sqa_services.board.board import Board
from sqa_services.board.rank import about_metrics
from sqa_services.board.task import NotFound, Taken, TooMany
from sqa_services.net.guard import PAGE_HEADERS, Address, given_token, guards, same
from sqa_services.net.server import run_app

NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"
SUBMISSION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A submission with one JSON object per line, see `sqa validate sqa --schema`",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}
OWNER, SUBMITTER = "owner", "submitter"  # holders of the two tokens
STATUS = ((Taken, 409), (NotFound, 404), (TooMany, 429))

TaskCode = Annotated[str, Path(pattern=NAME, examples=["sqa-es"])]
Name = Annotated[str, Path(pattern=NAME, examples=["mini"])]
CopyName = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,125}$", examples=["robustness-mini"])]
State = Literal["queued", "running", "done", "failed"]
Rows = list[dict[str, Any]]


class Ascii(JSONResponse):
    """JSON response in ASCII, so that a lone surrogate in a request cannot break the response."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


# --------------------------------------------------------------------------------------------------------- reading


def add_reading(app: FastAPI, board: Board, guarded: bool) -> None:
    """Add the routes that need no token; `guarded` says whether writing requires one."""

    descriptions = [
        {
            "code": task.code,
            "input_keys": task.input_keys,
            "perf_metric": task.perf_metric,
            "metrics": about_metrics(task),
            "default_weights": task.default_weights,
        }
        for task in board.tasks.values()
    ]

    @app.get("/api/tasks")
    async def tasks() -> Rows:
        """The tasks, their metrics and default weights."""
        return descriptions

    @app.get("/api/status")
    def status() -> dict[str, Any]:
        """The numbers of running and queued evaluations, and whether writing requires a token."""
        return {**queue.to_do(board.database), "guarded": guarded}

    @app.get("/api/tasks/{task}/datasets")
    def datasets(task: TaskCode) -> Rows:
        """The data sets of a task."""
        return board.datasets(task)

    @app.get("/api/tasks/{task}/datasets/{name}/examples")
    def examples(task: TaskCode, name: CopyName) -> Rows:
        """The examples of a data set or of PREFIX-NAME without their answers, as models get them."""
        return [board.task(task).inputs(example) for example in board.examples(task, name)]

    @app.get("/api/tasks/{task}/evaluations")
    def evaluations(task: TaskCode, state: State | None = None) -> Rows:
        """The evaluations of a task and their results."""
        return board.evaluations(task, state)

    @app.get("/api/tasks/{task}/leaderboard")
    def leaderboard(
        task: TaskCode,
        weights: Annotated[str | None, Query(max_length=1000, description="METRIC=WEIGHT,...")] = None,
        dataset: Annotated[list[str], Query(max_length=100)] = [],  # noqa: B006
    ) -> dict[str, Any]:
        """The models of a task, best Dynascore first."""
        return board.leaderboard(task, weights, dataset)

    @app.get("/api/tasks/{task}/models")
    def models(task: TaskCode) -> Rows:
        """The models of a task."""
        return board.models(task)


# --------------------------------------------------------------------------------------------------------- writing


def add_writing(app: FastAPI, board: Board, address: Address, per_day: int) -> None:
    """Add the routes that need a token."""
    one_at_a_time = CapacityLimiter(1)  # for the checks of submissions

    def authenticate(request: Request) -> str:
        """Return the caller's role by the request's token; everybody is an owner if the server has no token."""
        given = given_token(request.headers)
        if same(given, address.token or ""):
            return OWNER
        if address.submit_token and same(given, address.submit_token):
            return SUBMITTER
        raise HTTPException(401, "the token is unknown", {"WWW-Authenticate": "Bearer"})

    authenticated = Depends(authenticate)

    def owner(caller: str = authenticated) -> None:
        if caller != OWNER:
            raise HTTPException(403, "this request needs the owners' token")

    owners = [Depends(owner)]

    @app.get("/api/me")
    def me(caller: str = authenticated) -> dict[str, str]:
        """The role of the caller: owner or submitter."""
        return {"role": caller}

    @app.put("/api/tasks/{task}/models/{name}", status_code=201, openapi_extra=SUBMISSION)
    async def put_model(task: TaskCode, name: Name, request: Request, caller: str = authenticated) -> dict[str, Any]:
        """Register a submission and queue it on every data set; a refused submission also counts in the daily limit."""
        await to_thread.run_sync(board.require_free, task, name)  # before the check of the body
        if caller != OWNER:  # owners have no limit
            await to_thread.run_sync(board.spend, per_day)
        register = partial(board.register_model, task, name, "submission", await request.body())
        return await to_thread.run_sync(register, limiter=one_at_a_time)

    @app.post("/api/tasks/{task}/models/{name}/requeue", dependencies=owners)
    def requeue(task: TaskCode, name: Name) -> dict[str, int]:
        """Queue the failed evaluations of a submission again."""
        return {"queued": board.requeue(task, name)}

    @app.delete("/api/tasks/{task}/models/{name}", status_code=204, dependencies=owners)
    def delete(task: TaskCode, name: Name) -> None:
        """Delete a submission, its scores and its files."""
        board.remove(task, name)


# ------------------------------------------------------------------------------------------------- the server


def serve(board: Board, address: Address, per_day: int) -> None:
    """Serve until interrupted, and accept `per_day` submissions per day with the submitters' token."""
    run_app(make_app(board, address, per_day), address, "start `sqa board work` beside the board, which is")


def make_app(board: Board, address: Address, per_day: int) -> FastAPI:
    """Build the application of a board."""
    app = FastAPI(
        title="SQA evaluation board",
        version="1",
        docs_url=None,
        redoc_url=None,
        default_response_class=Ascii,
        middleware=guards(address, headers=PAGE_HEADERS),
    )
    app.add_exception_handler(SqaError, _deliberate)
    app.add_exception_handler(RequestValidationError, _invalid)
    add_reading(app, board, address.token is not None)
    add_writing(app, board, address, per_day)
    app.mount("/", StaticFiles(packages=[("sqa_services.board", "page")], html=True))
    return app


async def _deliberate(_: Request, error: Exception) -> Response:
    """Convert an error to a 4xx response."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 400)
    return Ascii({"detail": str(error)}, status)


async def _invalid(_: Request, error: Exception) -> Response:
    """Return a 422 response with the location and text of each problem, without the input."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    return Ascii({"detail": [{"loc": list(e["loc"]), "msg": e["msg"], "type": e["type"]} for e in errors]}, 422)
