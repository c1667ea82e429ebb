"""What the HTTP servers of this project have in common (Starlette on uvicorn): who may ask, how replies look.

A server binds to loopback unless it was given a token.  A request then brings it as "Authorization: Bearer TOKEN", or,
for clients that can only be given an address, as the password in it: http://any:TOKEN@host:port.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sqa.files.json_reader import parse_json
from sqa_services.net.guard import Page, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TYPE = "text/html; charset=UTF-8"  # of every reply of tornado's, JSON or not
Handler = Callable[[Request], Awaitable[Response]]


def json_body(body: bytes) -> object:
    """The JSON value of a body; ValueError if it is none."""
    return parse_json(body)


def reply(text: str, status: int = 200) -> Response:
    """A reply with tornado's content type."""
    return Response(text.encode(), status, {"Content-Type": TYPE})


def json_reply(value: object) -> Response:
    """A value as JSON."""
    return reply(json.dumps(value))


def page(status: int) -> Response:
    """tornado's error page."""
    return reply(page_text(status), status)


def page_text(status: int) -> str:
    """The text of tornado's error page."""
    title = f"{status}: {HTTPStatus(status).phrase}"
    return f"<html><title>{title}</title><body>{title}</body></html>"


def tornado_page(status: int, _: str) -> Page:
    """A refusal as tornado said it."""
    return TYPE.encode(), page_text(status).encode()


def application(
    routes: Sequence[tuple[str, str, Handler]],
    errors: Mapping[type[Exception], Callable[[Exception], Response]],
    close: Callable[[], None],
) -> Starlette:
    """An application of (method, path, handler); `errors`: what an exception is answered with.

    What has no route is an HTTPException; `close` is called at the end.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            close()

    handlers = {kind: _answering(answer) for kind, answer in errors.items()}
    app = Starlette(routes=[_route(*route) for route in routes], exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False
    return app


def _route(method: str, path: str, handler: Handler) -> Route:
    route = Route(path, handler, methods=[method])
    route.methods = {method}  # not HEAD, which the originals refuse too
    return route


def _answering(answer: Callable[[Exception], Response]) -> Any:
    async def respond(_: Request, error: Exception) -> Response:
        return answer(error)

    return respond


def status_of(error: Exception) -> int:
    """The status of a refusal, of ours or of the router's."""
    return (
        error.status if isinstance(error, Refused) else error.status_code if isinstance(error, HTTPException) else 500
    )
