"""What stands before the board's HTTP routes: the token, the size and the time of a request's body, response headers.

Plain ASGI, so that a body is counted as it comes and is never held beyond the limit.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

BODY_SECONDS = 30.0  # for a request's body to arrive
SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = (
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


class Refused(Exception):
    """A request that gets no further."""

    def __init__(self, status: int, problem: str) -> None:
        self.status, self.problem = status, problem


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI application before another."""

    app: App
    token: str | None  # needed for everything that writes; None = nobody is asked
    max_body: int  # bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = dict(scope["headers"])
            if scope["method"] not in SAFE:
                self._check_token(headers.get(b"authorization", b""))
            body = await self._body(headers.get(b"content-length"), receive)
        except Refused as refused:
            await _reply(send, refused)
            return
        await self.app(scope, _once(body, receive), _with_headers(send))

    def _check_token(self, given: bytes) -> None:
        if self.token and not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            raise Refused(401, "a token is needed: Authorization: Bearer TOKEN")

    async def _body(self, announced: bytes | None, receive: Receive) -> bytes:
        too_large = Refused(413, f"a body may have {self.max_body} bytes")
        if announced is not None and (not announced.isdigit() or int(announced[:20]) > self.max_body):
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
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
            raise Refused(408, f"the body did not arrive in {BODY_SECONDS:g} s") from error


def _once(body: bytes, receive: Receive) -> Receive:
    """The whole body as one message, then what the server says (that the client left)."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sending


async def _reply(send: Send, refused: Refused) -> None:
    body = json.dumps({"detail": refused.problem}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await _with_headers(send)({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
