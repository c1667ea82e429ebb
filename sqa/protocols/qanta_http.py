"""The HTTP side of `sqa serve qanta` (aiohttp): routes, limits, the token.

What is not such a question gets 400, a batch or text that is too long 413, and all replies are JSON.  Guessing runs in
a second thread, a request after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from sqa.core.errors import ConfigError, SqaError
from sqa.net.server import Refused, address_problems, check_token, json_body, read_body
from sqa.protocols.qanta_player import Player

ROOT = "/api/1.0/quizbowl"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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

    def __post_init__(self) -> None:
        wrong = address_problems(self.host, self.port, self.token)
        if min(self.batch_size, self.max_text, self.max_body) < 1 or not self.body_seconds > 0:
            wrong.append("batch_size, max_text, max_body and body_seconds must be at least 1")
        if wrong:
            raise ConfigError(wrong)


def make_app(player: Player, config: QantaConfig) -> web.Application:
    """The application."""
    server = Server(player, config)
    app = web.Application(client_max_size=config.max_body, middlewares=[server.guarded])
    app.router.add_route("GET", f"{ROOT}/status", server.status)
    app.router.add_route("POST", f"{ROOT}/act", server.act)
    app.router.add_route("POST", f"{ROOT}/batch_act", server.batch_act)
    app.on_cleanup.append(server.close)
    return app


class Server:
    """The routes of one player."""

    def __init__(self, player: Player, config: QantaConfig) -> None:
        self._player, self._config = player, config
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="player")

    async def close(self, _: web.Application) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def status(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"batch": True, "batch_size": self._config.batch_size, "ready": True, "include_wiki_paragraphs": False}
        )

    async def act(self, request: web.Request) -> web.Response:
        return web.json_response((await self._acts([await self._body(request)]))[0])

    async def batch_act(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        questions = body.get("questions") if isinstance(body, Mapping) else None
        if not isinstance(questions, list):
            raise Refused(400)
        if len(questions) > self._config.batch_size:
            raise Refused(413)
        return web.json_response(await self._acts(questions))

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The token, and errors as JSON."""
        try:
            if not request.path.endswith("/status"):
                check_token(request, self._config.token)
            return await handler(request)
        except Refused as refused:
            status = refused.status
        except web.HTTPException as error:
            status = error.status
        except SqaError as error:  # of the guesser
            return web.json_response({"error": str(error)}, status=500)
        return web.json_response({"error": HTTPStatus(status).phrase}, status=status)

    async def _body(self, request: web.Request) -> object:
        try:
            return json_body(await read_body(request, self._config.body_seconds))
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
