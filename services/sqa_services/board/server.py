"""The board over HTTP (FastAPI): a page at /, JSON below /api, its description at /openapi.json.

    GET /api/tasks                                    GET /api/tasks/TASK/leaderboard?weights=ew=4,dal=1&dataset=NAME
    GET /api/tasks/TASK/datasets                      PUT /api/tasks/TASK/datasets/NAME    {"questions": [...], ...}
    GET /api/tasks/TASK/datasets/NAME/examples        (what models are given; NAME may be PREFIX-NAME)
    GET /api/tasks/TASK/datasets/NAME/answers         (of an open data set)
    GET /api/tasks/TASK/models                        PUT /api/tasks/TASK/models/NAME      a submission, JSON lines
    GET /api/tasks/TASK/models/NAME/log               POST .../NAME/withdraw /restore /requeue, DELETE .../NAME
    GET /api/tasks/TASK/models/NAME/examples?dataset=D, GET /tasks/TASK/models/NAME/view?dataset=D&example=ID
    GET /api/tasks/TASK/evaluations?state=done        GET /api/evaluations/ID
    GET /api/tasks/TASK/views                         PUT /api/tasks/TASK/views/NAME       {"datasets": {...}}
    GET /api/status, /api/me                          POST /api/accounts, /api/invitations

Models that come over HTTP are submissions: a run's config can start programs, so configs are registered where the
board is.  Likewise a data set is a question set by name that is here already, or questions in the request; never a
path.  Bound beyond loopback, whatever writes needs the token, or that of an account, which may change its own
submissions; on loopback, requests for other host names are refused (DNS rebinding).
With a worker in a process beside the server, begun again if it dies, ended with the server (`beside`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from sqa.core.errors import Count, SqaError, checked
from sqa_services.board.accounts import Denied, TooMany, account_of
from sqa_services.board.board import Board, BoardConfig, NotFound, Taken
from sqa_services.board.routes.reading import add_models, add_reading, add_standing
from sqa_services.board.routes.shapes import Ascii
from sqa_services.board.routes.writing import Authenticate, add_data, add_people, add_submissions
from sqa_services.board.task import Unscorable
from sqa_services.net import connections
from sqa_services.net.address import Address
from sqa_services.net.guard import PAGE_HEADERS, guards, needed_to_write
from sqa_services.net.server import page_files

AGAIN_SECONDS = 5.0  # from the death of a worker to the next one
END_SECONDS = 10.0  # for a worker to end


@contextmanager
def beside(board: Board) -> Iterator[None]:
    """Until the block ends a worker runs; it says on stderr what it does."""
    stop = Event()
    watcher = Thread(target=_watch, args=(_command(board.config), stop), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _command(config: BoardConfig) -> list[str]:
    options = ["--board", str(config.folder.absolute())]
    options += [] if config.db is None else ["--db", config.db]
    options += [] if config.files is None else ["--files", config.files]
    for task in config.tasks:
        options += ["--task", task]
    return [sys.executable, "-m", "sqa", "board", *options, "work", "--beside", str(os.getpid())]


def _watch(command: list[str], stop: Event) -> None:
    while not stop.is_set():
        # a new session: ^C is for the server, which then ends its worker
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None and not stop.wait(0.2):
            pass
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        else:
            stop.wait(AGAIN_SECONDS)


SIGN_UP = "/api/accounts"  # an invitation takes the place of a token
REASONS = 1000  # of a submission that are listed
STATUS = ((Unscorable, 400), (Taken, 409), (NotFound, 404), (Denied, 403), (TooMany, 429))


@dataclass(frozen=True, slots=True)
@checked
class ServeConfig:
    """How the server answers."""

    address: Address = field(default_factory=Address)
    per_day: Count = 20  # submissions of an account


def serve(board: Board, config: ServeConfig, worker: bool = True) -> None:
    """Serve until interrupted, with a worker beside it if wanted."""
    print(f"sqa: the board is at {config.address.url}", file=sys.stderr)
    with beside(board) if worker else nullcontext():
        connections.run_app(make_app(board, config), config.address)


def make_app(board: Board, config: ServeConfig) -> FastAPI:
    """The application on a board."""
    app = FastAPI(
        title="SQA evaluation board",
        version="1",
        docs_url=None,
        redoc_url=None,
        default_response_class=Ascii,
        middleware=guards(
            config.address,
            headers=PAGE_HEADERS,
            needs_token=lambda method, path: needed_to_write(method, path) and path != SIGN_UP,
            tokens=lambda given: account_of(board.engine, given) is not None,
        ),
    )
    app.add_exception_handler(SqaError, _deliberate)
    app.add_exception_handler(RequestValidationError, _invalid)
    authenticate = Authenticate(board, config.address.token)
    add_reading(app, board, config.address.token is not None)
    add_standing(app, board)
    add_models(app, board)
    add_people(app, board, authenticate)
    add_data(app, board, authenticate)
    add_submissions(app, board, authenticate, config.per_day)
    app.router.routes.append(page_files("sqa_services.board"))
    return app


async def _deliberate(_: Request, error: Exception) -> Response:
    """4xx for what the request got wrong; every reason why a submission cannot be scored."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 400)
    content: dict[str, Any] = {"detail": str(error)}
    if isinstance(error, Unscorable):
        content |= {"reasons": error.reasons[:REASONS], "more": max(0, len(error.reasons) - REASONS)}
    return Ascii(content, status)


async def _invalid(_: Request, error: Exception) -> Response:
    """422 with the location and the problem, without the input."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    return Ascii({"detail": [{"loc": list(e["loc"]), "msg": e["msg"], "type": e["type"]} for e in errors]}, 422)
