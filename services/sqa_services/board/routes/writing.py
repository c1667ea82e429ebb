"""Requests that change something: accounts, data sets, views, submissions."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI, HTTPException, Request

from sqa.core.errors import DataError, SqaError
from sqa.data.datasets import available, question_sets
from sqa_services.board import accounts, lifecycle
from sqa_services.board.accounts import Caller, Denied
from sqa_services.board.board import Board, NotFound, Taken
from sqa_services.board.routes.shapes import (
    ERRORS,
    Name,
    NewAccount,
    NewDataset,
    NewInvitation,
    NewView,
    TaskCode,
)
from sqa_services.net.guard import given_token, same

MOST_HELD = 1 << 27  # bytes of submissions that wait to be checked
SUBMISSION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A submission: one JSON object a line, see `sqa validate sqa --schema`",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


class Authenticate:
    """The caller of a request by its token; without one it is the organiser's if the server has none."""

    def __init__(self, board: Board, token: str | None) -> None:
        self._board, self._token = board, token

    def __call__(self, request: Request) -> Caller:
        given = given_token(request.headers)
        if same(given, self._token or ""):
            return accounts.ORGANISER
        account = accounts.account_of(self._board.engine, given)
        if account is None:
            raise HTTPException(401, "no account has this token", {"WWW-Authenticate": "Bearer"})
        return account


def add_people(app: FastAPI, board: Board, authenticate: Authenticate) -> None:
    """Accounts by invitation."""
    authenticated = Depends(authenticate)

    @app.post("/api/accounts", status_code=201, responses=ERRORS)
    def post_account(new: NewAccount) -> dict[str, Any]:
        """Sign up with an invitation; the token is shown once."""
        return accounts.sign_up(board.engine, new.name, new.invitation)

    @app.post("/api/invitations", status_code=201, responses=ERRORS)
    def post_invitation(new: NewInvitation, caller: Caller = authenticated) -> dict[str, Any]:
        """An invitation, by the organiser."""
        _organiser(caller)
        return accounts.invite(board.engine, new.uses, new.days)

    @app.get("/api/me", responses=ERRORS)
    def me(caller: Caller = authenticated) -> dict[str, Any]:
        """The caller: a name, or null for the organiser."""
        return {"name": caller.name}


def add_data(app: FastAPI, board: Board, authenticate: Authenticate) -> None:
    """Data sets and views, by the organiser."""
    authenticated = Depends(authenticate)

    @app.put("/api/tasks/{task}/datasets/{name}", status_code=201, responses=ERRORS)
    def put_dataset(task: TaskCode, name: Name, new: NewDataset, caller: Caller = authenticated) -> dict[str, Any]:
        """Register a data set; every model of the task is queued on it."""
        _organiser(caller)
        if (new.source is None) == (new.questions is None):
            raise HTTPException(400, "give source or questions")
        if new.source is not None:
            here = [source for source in question_sets() if available(source)]
            if new.source not in here:
                raise HTTPException(400, f"source: one that is here already: {', '.join(here)}")
            return board.register_dataset(task, name, new.source, new.perturbations, new.seed, new.phase)
        return _of_questions(board, task, name, new)

    @app.put("/api/tasks/{task}/views/{name}", status_code=201, responses=ERRORS)
    def put_view(task: TaskCode, name: Name, new: NewView, caller: Caller = authenticated) -> dict[str, Any]:
        """Write the next version of what a headline is made of."""
        _organiser(caller)
        return board.set_view(task, name, new.datasets, new.metrics)


def add_submissions(app: FastAPI, board: Board, authenticate: Authenticate, per_day: int) -> None:
    """Submissions, by their owners."""
    authenticated = Depends(authenticate)
    held, one_at_a_time = 0, CapacityLimiter(1)  # bytes of submissions under way; one is checked, the others wait

    @app.put("/api/tasks/{task}/models/{name}", status_code=201, responses=ERRORS, openapi_extra=SUBMISSION)
    async def put_model(task: TaskCode, name: Name, request: Request, caller: Caller = authenticated) -> dict[str, Any]:
        """Register a submission; it is queued on every data set of the task.  Refused ones count among the day's."""
        nonlocal held
        body = await request.body()
        if held and held + len(body) > MOST_HELD:
            problem = "many submissions are being checked; send it again later"
            raise HTTPException(503, problem, {"Retry-After": "60"})
        held += len(body)
        try:
            await to_thread.run_sync(_admit, board, task, name, caller, per_day)
            register = partial(board.register_model, task, name, "submission", body, caller)
            return await to_thread.run_sync(register, limiter=one_at_a_time)
        finally:
            held -= len(body)

    @app.post("/api/tasks/{task}/models/{name}/withdraw", status_code=204, responses=ERRORS)
    def withdraw(task: TaskCode, name: Name, caller: Caller = authenticated) -> None:
        """Take a submission out of the rank."""
        lifecycle.withdraw(board.engine, task, name, caller)

    @app.post("/api/tasks/{task}/models/{name}/restore", status_code=204, responses=ERRORS)
    def restore(task: TaskCode, name: Name, caller: Caller = authenticated) -> None:
        """Undo a withdrawal."""
        lifecycle.restore(board.engine, task, name, caller)

    @app.post("/api/tasks/{task}/models/{name}/requeue", responses=ERRORS)
    def requeue(task: TaskCode, name: Name, caller: Caller = authenticated) -> dict[str, int]:
        """Queue what failed of a submission again."""
        return {"queued": lifecycle.requeue(board.engine, task, name, caller)}

    @app.delete("/api/tasks/{task}/models/{name}", status_code=204, responses=ERRORS)
    def delete(task: TaskCode, name: Name, caller: Caller = authenticated) -> None:
        """Delete a submission, its scores, its log and its files."""
        lifecycle.remove(board.engine, board.files, task, name, caller)


def _admit(board: Board, task: str, name: str, caller: Caller, per_day: int) -> None:
    """Before any of it is looked at: the name is free, and it is one of the day's."""
    board.require_free(task, name)
    accounts.spend(board.engine, caller, per_day)


def _organiser(caller: Caller) -> None:
    if not caller.organiser:
        raise Denied("for the organiser alone")


def _of_questions(board: Board, task: str, name: str, new: NewDataset) -> dict[str, Any]:
    """Register questions of a request; a problem names their data set, not where they lay meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.jsonl")
        path.write_text("".join(json.dumps(q.model_dump()) + "\n" for q in new.questions or ()), encoding="utf-8")
        try:
            return board.register_dataset(task, name, str(path), new.perturbations, new.seed, new.phase)
        except (Taken, NotFound):
            raise
        except SqaError as error:
            raise DataError(str(error).replace(f"{folder}/", "")) from error
