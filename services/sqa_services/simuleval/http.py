"""The HTTP side of `sqa serve simuleval` (Starlette): routes, limits, the token.  See server.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sqa.core.errors import ConfigError, SqaError
from sqa_services.net.address import address_problems
from sqa_services.net.guard import Guard, Refused, given_name
from sqa_services.net.log import LOG
from sqa_services.net.server import application, json_body, json_reply, page, reply, status_of, tornado_page

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
    lease_seconds: float = 10.0  # without a request, after which a sentence under way may be given up for another's
    names: tuple[str, ...] = ()  # host names by which it may be asked, beside this machine's; beyond loopback none: any

    def __post_init__(self) -> None:
        wrong = address_problems(self.host, self.port, self.token)
        if self.max_body < 1 or not self.body_seconds > 0 or self.lease_seconds < 0:
            wrong.append("max_body and body_seconds must be at least 1, lease_seconds at least 0")
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
    return Guard.of(
        app,
        config,
        needs_token=lambda _, path: path != "/",
        programs=lambda _, path: path != "/",
        page=tornado_page,
    )


def _failed(error: Exception) -> Response:
    """Of the translator."""
    LOG.error("sqa: %s", error)
    return page(500)


class Lease:
    """Whose sentence is under way; a second client is refused (409) until it is over, or was left alone for long.

    The protocol names neither clients nor sentences.  A client is known by the user in its address and by its machine;
    of two without a user on one machine the second is known by what it does: it resets in the middle of a sentence, or
    sends a segment that is not the next one.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._client: tuple[bytes, str] = (b"", "")
        self._segments, self._unanswered = 0, 0  # of this sentence: words that came, and those without their output
        self._used, self._contested = -seconds, -seconds  # time.monotonic()

    def reset(self, client: tuple[bytes, str]) -> None:
        """A sentence begins; one with a user may begin anew at any time."""
        if self._under_way() and not (client == self._client and client[0]):
            self._refuse()
        self._client, self._segments, self._unanswered = client, 0, 0

    def input(self, client: tuple[bytes, str], index: int | None) -> None:
        """A segment; `index`: its number, of an empty one None."""
        now = time.monotonic()
        if self._under_way() and client != self._client:
            self._refuse()
        if index is not None:
            if index != self._segments and self._seconds:
                self._refuse()
            if self._segments >= MAX_SEGMENTS:
                raise Refused(413)
            self._client, self._segments = client, self._segments + 1
        self._used, self._unanswered = now, self._unanswered + 1

    def output(self, client: tuple[bytes, str]) -> None:
        """What follows an input."""
        contested = time.monotonic() - self._contested < self._seconds
        if self._under_way() and (client != self._client or (contested and not self._unanswered)):
            self._refuse()
        self._unanswered = max(0, self._unanswered - 1)
        self._used = time.monotonic()

    def over(self) -> None:
        """The sentence has ended."""
        self._segments = 0

    def _under_way(self) -> bool:
        return self._segments > 0 and time.monotonic() - self._used < self._seconds

    def _refuse(self) -> None:
        self._contested = time.monotonic()
        raise Refused(409)


class Server:
    """The routes of one agent, which works in a thread of its own."""

    def __init__(self, agent: GenericAgent, config: ServiceConfig) -> None:
        self._agent, self._config = agent, config
        self._lease = Lease(config.lease_seconds)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agent")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def info(self, request: Request) -> Response:
        return json_reply({"info": str(self._agent)})

    async def reset(self, request: Request) -> Response:
        self._lease.reset(_client(request))
        await self._run(self._agent.reset)
        return reply("")

    async def input(self, request: Request) -> Response:
        body = await request.body()
        try:
            segment = _segment(body)
        except (ValueError, TypeError, KeyError) as error:
            raise Refused(500) from error  # what the original answers
        self._lease.input(_client(request), None if segment.is_empty else segment.index)
        await self._run(self._agent.push, segment)
        return reply("")

    async def output(self, request: Request) -> Response:
        self._lease.output(_client(request))
        segment = await self._run(self._agent.pop)
        if segment.finished:
            self._lease.over()
        return json_reply(_plain(segment))

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


def _client(request: Request) -> tuple[bytes, str]:
    """The user in its address, and its machine."""
    user = given_name(request.headers.get("Authorization", "").encode("latin-1"))
    return user, request.client.host if request.client else ""


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
