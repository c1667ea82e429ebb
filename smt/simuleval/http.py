"""The HTTP side of `sqa serve simuleval` (Starlette): routes, limits, the token.  See smt/simuleval/server.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sqa.core.errors import ConfigError, SqaError
from sqa.net.address import Names, address_problems
from sqa.net.guard import Guard, Refused
from sqa.net.log import LOG
from sqa.net.server import application, json_body, json_reply, page, reply, status_of, tornado_page

if TYPE_CHECKING:
    from simuleval.agents import GenericAgent
    from simuleval.data.segments import Segment

MAX_SEGMENTS = 10_000  # of one sentence


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """How the server answers."""

    host: str = "127.0.0.1"
    port: int = 12321
    token: str | None = None  # then needed for all but GET /
    max_body: int = 1 << 20  # bytes
    body_seconds: float = 30.0  # for a request's body to arrive
    names: tuple[str, ...] = ()  # host names by which it may be asked, beside this machine's; beyond loopback none: any

    def __post_init__(self) -> None:
        wrong = address_problems(self.host, self.port, self.token)
        if self.max_body < 1 or not self.body_seconds > 0:
            wrong.append("max_body and body_seconds must be at least 1")
        if wrong:
            raise ConfigError(wrong)


def make_app(agent: GenericAgent, config: ServiceConfig) -> Guard:
    """The application."""
    server = Server(agent, config)
    routes = [
        ("GET", "/", server.info),
        ("POST", "/reset", server.reset),
        ("PUT", "/input", server.input),
        ("GET", "/output", server.output),
    ]
    app = application(
        routes,
        {
            Refused: lambda error: page(status_of(error)),
            HTTPException: lambda error: page(status_of(error)),
            SqaError: _failed,
        },
        server.close,
    )
    return Guard(
        app,
        config.token,
        config.max_body,
        Names.of(config.host, config.names),
        config.body_seconds,
        needs_token=lambda _, path: path != "/",
        page=tornado_page,
    )


def _failed(error: Exception) -> Response:
    """Of the translator."""
    LOG.error("sqa: %s", error)
    return page(500)


class Server:
    """The routes of one agent, which works in a thread of its own."""

    def __init__(self, agent: GenericAgent, config: ServiceConfig) -> None:
        self._agent, self._config = agent, config
        self._segments = 0  # of this sentence
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agent")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def info(self, request: Request) -> Response:
        return json_reply({"info": str(self._agent)})

    async def reset(self, request: Request) -> Response:
        self._segments = 0
        await self._run(self._agent.reset)
        return reply("")

    async def input(self, request: Request) -> Response:
        body = await request.body()
        try:
            segment = _segment(body)
        except (ValueError, TypeError, KeyError) as error:
            raise Refused(500) from error  # what the original answers
        if self._segments >= MAX_SEGMENTS:
            raise Refused(413)
        self._segments += 1
        await self._run(self._agent.push, segment)
        return reply("")

    async def output(self, request: Request) -> Response:
        return json_reply(_plain(await self._run(self._agent.pop)))

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


def _segment(body: bytes) -> Segment:
    """The source segment in a body.  Anything else: ValueError, TypeError or KeyError."""
    from simuleval.data.segments import segment_from_json_string

    found = json_body(body)
    if not isinstance(found, dict) or not isinstance(found.get("config", {}), dict):
        raise ValueError("an object was expected, and one as its config")
    kind = found["data_type"]
    if kind in ("speech", "speech_text") or (kind == "text" and not isinstance(found.get("content"), str)):
        raise ValueError("a segment of text was expected")
    return segment_from_json_string(body.decode("utf-8"))


def _plain(segment: Segment) -> dict[str, Any]:
    """A segment as JSON values.  The target language of a text without one is, in SimulEval 1.1.4, a type: null."""
    values = dict(vars(segment))
    language = values.get("tgt_lang")
    return values | {"tgt_lang": language if isinstance(language, str) else None}
