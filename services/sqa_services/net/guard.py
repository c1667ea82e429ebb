"""What stands before every server's routes: names, the token, the size and the time of a request's body, headers.

Plain ASGI, so that a body is counted as it comes and is never held beyond the limit.
"""

from __future__ import annotations

import asyncio
import binascii
import hmac
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqa_services.net.address import ANY_NAME, Names

BODY_SECONDS = 30.0  # for a request's body to arrive
SAFE = ("GET", "HEAD", "OPTIONS")
PAGE_HEADERS = (  # of a server with a page of its own: nothing from elsewhere, in no frame, never kept
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
Page = tuple[bytes, bytes]  # content type and body of an answer


class Refused(Exception):
    """A request that gets no further."""

    def __init__(self, status: int, problem: str = "") -> None:
        self.status, self.problem = status, problem


def json_page(status: int, problem: str) -> Page:
    """{"detail": problem}."""
    return b"application/json", json.dumps({"detail": problem}).encode()


def needed_to_write(method: str, path: str) -> bool:
    """A token is for what changes something; everybody may read."""
    return method not in SAFE


class Limits(Protocol):
    """What the config of a server says of its requests."""

    @property
    def host(self) -> str:
        """The address that it listens on."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names besides the host's that requests may call it by."""
        ...

    @property
    def token(self) -> str | None:
        """What a request must know; None = nothing."""
        ...

    @property
    def max_body(self) -> int:
        """Bytes of a request's body."""
        ...

    @property
    def body_seconds(self) -> float:
        """For a body to arrive."""
        ...


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI application before another."""

    app: App
    token: str | None  # None = nobody is asked
    max_body: int  # bytes
    names: Names = ANY_NAME
    body_seconds: float | None = None  # for a body to arrive; None = BODY_SECONDS
    needs_token: Callable[[str, str], bool] = needed_to_write  # by method and path
    page: Callable[[int, str], Page] = json_page  # how a refusal is said
    headers: tuple[tuple[bytes, bytes], ...] = ()  # of every answer that has none of that name itself
    tokens: Callable[[bytes], bool] | None = None  # others that will do
    programs: Callable[[str, str], bool] | None = None  # by method and path: what no browser may ask for

    @classmethod
    def of(cls, app: App, config: Limits, **more: Any) -> Guard:
        """With the limits of a server's config; `more` are the other fields."""
        names = Names.of(config.host, config.names)
        return cls(app, config.token, config.max_body, names, config.body_seconds, **more)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = [False]
        try:
            body = await self._admitted(scope, receive)
            await self.app(scope, _once(body, receive), self._with_headers(send, started))
        except Refused as refused:
            await self._reply(send, refused)
        except asyncio.CancelledError:  # the server ends; nobody else cancels a request
            if not started[0]:
                await self._reply(send, Refused(503, "the server ends"))

    async def _admitted(self, scope: Message, receive: Receive) -> bytes:
        """The body of a request that may be answered; else Refused."""
        headers = dict(scope["headers"])
        self._check_origin(headers)
        if self.programs is not None and self.programs(scope["method"], scope["path"]) and _of_a_browser(headers):
            raise Refused(403, "this is for programs; a browser may ask for what changes nothing")
        if self.needs_token(scope["method"], scope["path"]):
            self._check_token(headers.get(b"authorization", b""))
        return await self._body(headers, receive)

    def _check_origin(self, headers: dict[bytes, bytes]) -> None:
        """That a page of somebody else's, in a browser of somebody who can reach this server, is not who asks."""
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        if not self.names.allow(host):
            raise Refused(400, "Invalid host header")
        if headers.get(b"sec-fetch-site") == b"cross-site" and headers.get(b"sec-fetch-mode") != b"navigate":
            raise Refused(403, "a request of another site's page")
        if origin is not None and origin.partition(b"://")[2] != host:
            raise Refused(403, "a request of another site's page")

    def _check_token(self, header: bytes) -> None:
        if not self.token:
            return
        given = given_token(header)
        if self.tokens is not None and self.tokens(given):
            return
        if not hmac.compare_digest(given, self.token.encode()):
            raise Refused(401, "a token is needed: Authorization: Bearer TOKEN")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        announced = headers.get(b"content-length")
        if announced is None and b"transfer-encoding" not in headers:
            return b""
        too_large = Refused(413, f"a body may have {self.max_body} bytes")
        if announced is not None and (not announced.isdigit() or int(announced[:20]) > self.max_body):
            raise too_large
        seconds = BODY_SECONDS if self.body_seconds is None else self.body_seconds
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the client went away")
                    body += message.get("body", b"")
                    if len(body) > self.max_body:
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError as error:
            raise Refused(408, f"the body did not arrive in {seconds:g} s") from error

    def _with_headers(self, send: Send, started: list[bool]) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                started[0] = True
                own = message.get("headers", [])
                named = {name for name, _ in own}  # an answer's own header stands for the server's
                message["headers"] = [*own, *(header for header in self.headers if header[0] not in named)]
            await send(message)

        return sending

    async def _reply(self, send: Send, refused: Refused) -> None:
        kind, body = self.page(refused.status, refused.problem)
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *self.headers]
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _of_a_browser(headers: dict[bytes, bytes]) -> bool:
    """Whether a browser asks: a link, a frame or an image of any page makes it GET what the page likes.

    No page can take these headers from such a request, or put others in their place.
    """
    named = headers.get(b"user-agent", b"").startswith(b"Mozilla/")
    return named or b"sec-fetch-site" in headers or headers.get(b"sec-fetch-mode") == b"navigate"


def given_token(header: bytes) -> bytes:
    """The token of an Authorization header: "Bearer TOKEN", or the password of "Basic ...", else b""."""
    kind, _, given = header.partition(b" ")
    if kind.lower() == b"bearer":
        return given
    return _basic(given)[1] if kind.lower() == b"basic" else b""


def given_name(header: bytes) -> bytes:
    """The user of an Authorization header "Basic ...", else b""."""
    kind, _, given = header.partition(b" ")
    return _basic(given)[0] if kind.lower() == b"basic" else b""


def _basic(given: bytes) -> tuple[bytes, bytes]:
    try:
        name, _, password = b64decode(given, validate=True).partition(b":")
    except binascii.Error:
        return b"", b""
    return name, password


def _once(body: bytes, receive: Receive) -> Receive:
    """The whole body as one message, then what the server says (that the client left)."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
