"""The address of a server, and its middleware.

The middleware checks host names, body size, cross-site requests and tokens, and sets response headers.
"""

import asyncio
import binascii
import hmac
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated, Any

from msgspec import Meta
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqa.core import Count, checked

SHORTEST = 16  # minimum length of a token, in characters
SAFE = ("GET", "HEAD", "OPTIONS")
PAGE_HEADERS = {  # headers of a server with a page: only own resources, no frames, no caching
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
RenderError = Callable[[int, str], Response]  # function that renders a refusal from its status and problem


@dataclass(frozen=True, slots=True)
@checked
class Address:
    """The address of a server, the tokens that it accepts, and the limits on its requests."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), "0 selects a free port"] = 0
    token: Annotated[str | None, 'clients must send "Authorization: Bearer TOKEN"; required except on loopback'] = None
    names: Annotated[
        tuple[str, ...], "further host names that the server answers to; empty = any name, except on loopback"
    ] = ()
    max_body: Annotated[Count, "maximum bytes of a request"] = 1 << 20
    submit_token: Annotated[str | None, "a board's token that only uploads submissions"] = None

    def problems(self) -> list[str]:
        """Return the problems, one line each."""
        starred = [name for name in self.names if "*" in name.removeprefix("*.")]
        wrong = [f"--name: a star is allowed only as in *.example.org, got {name!r}" for name in starred]
        if not self.local and not self.token:
            wrong.append(f"--host: {self.host} can be reached from other machines; give a --token-file")
        for file, token in (("--token-file", self.token), ("--submit-token-file", self.submit_token)):
            if token is not None and len(token) < SHORTEST:
                wrong.append(f"{file}: a token must have at least {SHORTEST} characters, got {len(token)}")
        if self.submit_token is not None and self.token in (None, self.submit_token):
            wrong.append("--submit-token-file: also give a --token-file with another token, for owners")
        return wrong

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{self.host}:{self.port}"

    @property
    def hosts(self) -> list[str]:
        """The host names that the server answers to, in Starlette's form.

        A page in a browser can point its own host name at this machine (DNS rebinding) and could then read a server's
        responses.  Its requests still carry that host name, so the server can refuse them.
        """
        local_names = ("localhost", "127.0.0.1", "::1", self.host) if self.local else ()
        return [f"[{name}]" if ":" in name else name for name in (*local_names, *self.names)] or ["*"]


class Refused(Exception):
    """A refused request."""

    def __init__(self, status: int, problem: str = "") -> None:
        super().__init__(status, problem)
        self.status, self.problem = status, problem

    def __str__(self) -> str:
        return self.problem


def json_page(status: int, problem: str) -> Response:
    """Return {"detail": problem}."""
    return JSONResponse({"detail": problem}, status)


def changes_something(scope: Scope) -> bool:
    """Return whether a request's method may change data; by default, only these requests need a token."""
    return scope["method"] not in SAFE


def guards(address: Address, **more: Any) -> list[Middleware]:
    """Return the middleware of an application; `more` are fields of `Guard`."""
    return [
        Middleware(TrustedHostMiddleware, allowed_hosts=address.hosts, www_redirect=False),
        Middleware(Guard, address=address, **more),
    ]


@dataclass(frozen=True, slots=True)
class Guard:
    """ASGI middleware that passes a request to the application after its whole body has arrived."""

    app: ASGIApp
    address: Address
    needs_token: Callable[[Scope], bool] = changes_something
    render_error: RenderError = json_page
    headers: Mapping[str, str] = field(default_factory=dict)  # default headers of every response
    programs: Callable[[Scope], bool] = lambda _: False  # whether a request is reserved for programs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started, headers = True, MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)  # headers set by the application take precedence
            await send(message)

        try:
            self._admit(scope)
            await self.app(scope, _once(await self._body(Request(scope, receive)), receive), sending)
        except Refused as refused:
            await self._refuse(refused, scope, receive, sending)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:  # a request is cancelled only if the server shuts down
            if not started:
                await self._refuse(Refused(503, "the server is shutting down"), scope, receive, sending)

    def _admit(self, scope: Scope) -> None:
        """Raise Refused for cross-site requests, a browser's requests to program routes, and a missing token."""
        headers = Headers(scope=scope)
        elsewhere = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        origin = headers.get("origin")
        if elsewhere or (origin is not None and origin.partition("://")[2] != headers.get("host", "")):
            raise Refused(403, "pages of other sites may not send requests to this server")
        if _of_a_browser(headers) and self.programs(scope):
            raise Refused(403, "this route is for programs; a browser may only send requests that change nothing")
        if self.address.token and self.needs_token(scope):
            given = given_token(headers)
            if not any(same(given, token) for token in (self.address.token, self.address.submit_token) if token):
                raise Refused(401, "a token is needed: Authorization: Bearer TOKEN")

    async def _body(self, request: Request) -> bytes:
        """Return the body of a request; raises Refused if it or its declared length is above the limit."""
        body, declared = bytearray(), request.headers.get("content-length", "")
        too_long = Refused(413, f"the body is longer than {self.address.max_body} bytes")
        if declared.isdecimal() and int(declared) > self.address.max_body:
            raise too_long
        async for part in request.stream():
            body += part
            if len(body) > self.address.max_body:
                raise too_long
        return bytes(body)

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self.render_error(refused.status, refused.problem)
        if refused.status == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        await answer(scope, receive, send)


def _of_a_browser(headers: Headers) -> bool:
    """Return whether a browser sent the request, according to headers that no web page can remove or replace.

    Any page can make a browser GET a URL through a link, a frame or an image.
    """
    named = headers.get("user-agent", "").startswith("Mozilla/")
    return named or "sec-fetch-site" in headers or headers.get("sec-fetch-mode") == "navigate"


def given_token(headers: Headers) -> bytes:
    """Return the token of a request: "Authorization: Bearer TOKEN", or the password of "Basic ...", or b""."""
    kind, _, given = headers.get("authorization", "").encode("latin-1").partition(b" ")
    if kind.lower() == b"bearer":
        return given
    try:
        return b64decode(given if kind.lower() == b"basic" else b"", validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def same(given: bytes, token: str) -> bool:
    """Compare a given token with the expected one in constant time."""
    return hmac.compare_digest(given, token.encode())


def _once(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` function that returns the body as one message, then the server's messages (disconnection)."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
