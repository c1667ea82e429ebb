"""`sqa serve simuleval`: a translator of this project, or a SimulEval agent, for `simuleval --remote-eval`.

    GET /          {"info": TEXT}                        POST /reset    discard the current sentence
    PUT /input     a segment of the source, as JSON      GET /output    a segment of the translation, as JSON

Routes, bodies and status codes are those of `simuleval --standalone` (SimulEval 1.1), with limits and, beyond loopback,
a token.  The protocol has no name for a client or a sentence, so the server handles one sentence at a time and refuses
other clients (409) until it ends.  A user in the address (any:TOKEN@host) distinguishes clients.  Start one server per
client.

`simuleval` cannot send a token itself, so the token is the password in its address: --remote-address any:TOKEN@host.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from sqa.core.errors import ConfigError
from sqa.core.packages import need
from sqa.files.records import parse_json
from sqa_services.net import serving
from sqa_services.net.address import Address
from sqa_services.net.guard import Refused, given_name
from sqa_services.net.server import OneThread, Route, application, json_reply, reply, tornado_page
from sqa_services.simuleval.agent import SimulevalConfig, SimulevalTranslator, quiet_imports

if TYPE_CHECKING:
    from simuleval.agents import GenericAgent
    from simuleval.data.segments import Segment

MAX_SEGMENTS = 10_000  # maximum segments of one sentence
LEASE_SECONDS = 10.0  # idle time after which another client may take over


def serve(translator: str, agent: str, arguments: Sequence[str], address: Address) -> None:
    """Serve until interrupted.  Raises ConfigError if simuleval is missing."""
    served = agent_of(translator, agent, arguments)
    print(f"sqa: {served} at {address.url}; simuleval --remote-eval --remote-port {address.port}", file=sys.stderr)
    serving.run_app(make_app(served, address), address)


def agent_of(translator: str, agent: str = "", arguments: Sequence[str] = ()) -> GenericAgent:
    """Return the SimulEval agent to serve: a wrapped translator (YAML or config file), or an agent "file.py:Class"."""
    need("simuleval", "sqa serve simuleval")
    if bool(translator) == bool(agent):
        raise ConfigError("--translator and --agent: give exactly one of them")
    if agent:
        return SimulevalTranslator(SimulevalConfig(agent, tuple(arguments))).agent
    if arguments:
        raise ConfigError(f"{' '.join(arguments)}: these are options of an agent, but no --agent was given")
    with quiet_imports():
        from sqa_services.simuleval.translator_agent import TranslatorAgent
    return TranslatorAgent(Namespace(translator=translator))


def make_app(agent: GenericAgent, address: Address) -> Starlette:
    """Return the application.  All requests except GET / need the token."""
    server = Server(agent)
    routes = [
        Route("GET", "/", server.info, public=True),
        Route("POST", "/reset", server.reset, programs=True),
        Route("PUT", "/input", server.input, programs=True),
        Route("GET", "/output", server.output, programs=True),
    ]
    return application(address, routes, tornado_page, server.close)


class Lease:
    """The client whose sentence is in progress; others are refused (409) until the sentence ends or times out.

    The protocol names neither clients nor sentences.  A client is identified by the user in its address and by its
    machine.  If two clients on one machine have no user, the second is recognised by a reset in the middle of a
    sentence, a segment out of order, or a request for an output without an input.
    """

    def __init__(self) -> None:
        self._client: tuple[bytes, str] = (b"", "")
        self._segments = 0  # segments received for the sentence
        self._answered = True  # whether the output of the last input was requested
        self._used = 0.0  # time.monotonic() of the last request

    def reset(self, client: tuple[bytes, str]) -> None:
        """Start a sentence; a client with a user may do so at any time."""
        self._refuse_if(self._under_way() and not (client == self._client and client[0]))
        self._client, self._segments, self._answered = client, 0, True

    def input(self, client: tuple[bytes, str], index: int | None) -> None:
        """Accept a segment; `index` is its 0-based index in the sentence, or None for an empty segment."""
        self._refuse_if(self._under_way() and client != self._client)
        if index is not None:
            self._refuse_if(index != self._segments)
            if self._segments >= MAX_SEGMENTS:
                raise Refused(413)
            self._client, self._segments = client, self._segments + 1
        self._used, self._answered = time.monotonic(), False

    def output(self, client: tuple[bytes, str]) -> None:
        """Record that the output of the last input is requested."""
        self._refuse_if(self._under_way() and (client != self._client or self._answered))
        self._used, self._answered = time.monotonic(), True

    def over(self) -> None:
        """End the sentence."""
        self._segments = 0

    def _under_way(self) -> bool:
        return self._segments > 0 and time.monotonic() - self._used < LEASE_SECONDS

    def _refuse_if(self, another: bool) -> None:
        if another:
            raise Refused(409)


class Server:
    """Request handlers for one agent, which runs in a separate thread."""

    def __init__(self, agent: GenericAgent) -> None:
        self._agent, self._lease = agent, Lease()
        self._thread = OneThread("agent")
        self.close = self._thread.close

    async def info(self, request: Request) -> Response:
        return json_reply({"info": str(self._agent)})

    async def reset(self, request: Request) -> Response:
        self._lease.reset(_client(request))
        await self._thread.run(self._agent.reset)
        return reply("")

    async def input(self, request: Request) -> Response:
        body = await request.body()
        try:
            segment = _segment(body)
        except (ValueError, TypeError, KeyError) as error:
            raise Refused(500) from error  # status of the original server
        self._lease.input(_client(request), None if segment.is_empty else segment.index)
        await self._thread.run(self._agent.push, segment)
        return reply("")

    async def output(self, request: Request) -> Response:
        self._lease.output(_client(request))
        segment = await self._thread.run(self._agent.pop)
        if segment.finished:
            self._lease.over()
        return json_reply(_plain(segment))


def _client(request: Request) -> tuple[bytes, str]:
    """Return the user in the client's address, and the client's machine."""
    return given_name(request.headers), request.client.host if request.client else ""


def _segment(body: bytes) -> Segment:
    """Return the source segment in a body.  Raises ValueError, TypeError or KeyError if there is none."""
    from simuleval.data.segments import segment_from_json_string

    value = parse_json(body)
    if not isinstance(value, dict) or not isinstance(value.get("config", {}), dict):
        raise ValueError("expected an object whose config is also an object")
    kind = value["data_type"]
    if kind in ("speech", "speech_text") or (kind == "text" and not isinstance(value.get("content"), str)):
        raise ValueError("expected a text segment")
    return segment_from_json_string(body.decode("utf-8"))


def _plain(segment: Segment) -> dict[str, Any]:
    """Return a segment as JSON values; a missing target language, which is a type in SimulEval 1.1.4, becomes null."""
    values = dict(vars(segment))
    language = values.get("tgt_lang")
    return values | {"tgt_lang": language if isinstance(language, str) else None}
