"""The HTTP side of `sqa serve qanta` (Starlette): routes, limits, the token.

What is not such a question gets 400, a batch or text that is too long 413, and all replies are JSON.  Guessing runs in
a second thread, a request after the other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sqa.core.errors import ConfigError, SqaError
from sqa_services.net.address import address_problems
from sqa_services.net.guard import Guard, Page, Refused
from sqa_services.net.server import application, json_body, status_of
from sqa_services.protocols.qanta_player import Player

ROOT = "/api/1.0/quizbowl"
TYPE = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class QantaConfig:
    """How the server answers."""

    host: str = "127.0.0.1"
    port: int = 4861
    token: str | None = None  # then needed for all but the status
    underscores: bool = False  # write titles with "_" for blanks, as QANTA's data does
    batch_size: int = 200  # questions in a batch at most
    max_text: int = 5_000  # characters of a question
    max_body: int = 4 << 20  # bytes
    body_seconds: float = 30.0  # for a request's body to arrive
    names: tuple[str, ...] = ()  # host names by which it may be asked, beside this machine's; beyond loopback none: any

    def __post_init__(self) -> None:
        wrong = address_problems(self.host, self.port, self.token)
        if min(self.batch_size, self.max_text, self.max_body) < 1 or not self.body_seconds > 0:
            wrong.append("batch_size, max_text, max_body and body_seconds must be at least 1")
        if wrong:
            raise ConfigError(wrong)


def make_app(player: Player, config: QantaConfig) -> Guard:
    """The application."""
    server = Server(player, config)
    routes = [
        ("GET", f"{ROOT}/status", server.status),
        ("POST", f"{ROOT}/act", server.act),
        ("POST", f"{ROOT}/batch_act", server.batch_act),
    ]
    app = application(
        routes,
        {
            Refused: lambda error: _error(status_of(error)),
            HTTPException: lambda error: _error(status_of(error)),
            SqaError: lambda error: _reply({"error": str(error)}, 500),  # of the guesser
        },
        server.close,
    )
    return Guard.of(
        app,
        config,
        needs_token=lambda _, path: not path.endswith("/status"),
        page=_page,
    )


def _reply(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value).encode(), status, {"Content-Type": TYPE})


def _error(status: int) -> Response:
    return _reply({"error": HTTPStatus(status).phrase}, status)


def _page(status: int, _: str) -> Page:
    return TYPE.encode(), json.dumps({"error": HTTPStatus(status).phrase}).encode()


class Server:
    """The routes of one player."""

    def __init__(self, player: Player, config: QantaConfig) -> None:
        self._player, self._config = player, config
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="player")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def status(self, request: Request) -> Response:
        return _reply(
            {"batch": True, "batch_size": self._config.batch_size, "ready": True, "include_wiki_paragraphs": False}
        )

    async def act(self, request: Request) -> Response:
        return _reply((await self._acts([await self._body(request)]))[0])

    async def batch_act(self, request: Request) -> Response:
        body = await self._body(request)
        questions = body.get("questions") if isinstance(body, Mapping) else None
        if not isinstance(questions, list):
            raise Refused(400)
        if len(questions) > self._config.batch_size:
            raise Refused(413)
        return _reply(await self._acts(questions))

    async def _body(self, request: Request) -> object:
        try:
            return json_body(await request.body())
        except ValueError as error:
            raise Refused(400) from error

    async def _acts(self, questions: list[object]) -> list[dict[str, object]]:
        texts = [self._text(question) for question in questions]
        acts = await asyncio.get_running_loop().run_in_executor(self._thread, self._player.act, texts)
        blank = "_" if self._config.underscores else " "
        return [{"guess": act.guess.replace(" ", blank), "buzz": act.buzz} for act in acts]

    def _text(self, question: object) -> str:
        text = question.get("text") if isinstance(question, Mapping) else None
        if not isinstance(text, str):
            raise Refused(400)
        if len(text) > self._config.max_text:
            raise Refused(413)
        return text
