"""Common parts of the HTTP servers (Starlette): routes with their checks, responses, pages.

A server binds to loopback unless it has a token.  Requests then carry the token as "Authorization: Bearer TOKEN".  For
clients that accept only a URL, the token is the password in the URL: http://any:TOKEN@host:port.

Applications run under uvicorn, within uvicorn's own limits.  A client that sends its request slowly, or does not read
the response, can hold a connection for an unlimited time.  A server that strangers can reach therefore needs a proxy:
services/nginx.conf, explained in docs/trust.md.
"""

import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette import routing
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from sqa.core import ConfigError, SqaError
from sqa_services.net.guard import Address, Refused, RenderError, guards

CONNECTIONS = 700  # maximum number of open connections; further requests get 503.  Many systems allow 1,024 files
IDLE_SECONDS = 75  # maximum seconds between two requests of a connection
HEAD_BYTES = 1 << 14
WAITING = 1_024  # connections that the operating system queues until they are accepted
LOG = logging.getLogger("sqa_services.net")


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket.  Raises ConfigError if the address is in use or does not belong to this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=WAITING)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        problem = f"--host, --port: cannot listen on {host}:{port} ({reason}); choose another address"
        raise ConfigError(problem) from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # without TCP_NODELAY, small responses take 40 ms
    return listening


def server_of(app: Any) -> uvicorn.Server:
    """Return the server of an ASGI application; run it with a socket from `bind`."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            loop="asyncio",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
    )


def run_app(app: Any, address: Address, what: str = "the server is") -> None:
    """Serve until interrupted; print `what` with the URL on stderr once the port is open.

    Uvicorn raises the signal that ended it again; the exit status is 0 nevertheless.
    """
    logging.basicConfig(format="sqa: %(message)s", level=logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with bind(address.host, address.port) as listening, suppress(KeyboardInterrupt):
        print(f"sqa: {what} at {address.url}", file=sys.stderr)
        server_of(app).run(sockets=[listening])


TYPE = "text/html; charset=UTF-8"  # content type of all tornado responses, including JSON
Handler = Callable[[Request], Awaitable[Response]]


def reply(text: str, status: int = 200) -> Response:
    """Return a response with tornado's content type."""
    return Response(text.encode(), status, {"Content-Type": TYPE})


def json_reply(value: object) -> Response:
    """Return a JSON response with tornado's content type."""
    return reply(json.dumps(value))


def tornado_page(status: int, _: str = "") -> Response:
    """Return tornado's error page."""
    title = f"{status}: {HTTPStatus(status).phrase}"
    return reply(f"<html><title>{title}</title><body>{title}</body></html>", status)


class Route(routing.Route):
    """A route of a server, and the clients that may request it."""

    def __init__(self, method: str, path: str, handler: Handler, public: bool = False, programs: bool = False) -> None:
        """Create a route.

        A `public` route needs no token.  A route for `programs` refuses browsers, since any web page can make a browser
        GET a URL.
        """
        super().__init__(path, handler, methods=[method])
        self.methods = {method}  # without HEAD, which the original servers refuse as well
        self.public, self.programs = public, programs


def application(address: Address, routes: Sequence[Route], render_error: RenderError) -> Starlette:
    """Return an application that serves routes behind a Guard.

    `render_error` renders the response to a request that is Refused, has no route or fails with SqaError.
    """

    def asked(scope: Scope) -> Route | None:
        return next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)

    async def refused(_: Request, error: Exception) -> Response:
        if isinstance(error, Refused):
            return render_error(error.status, error.problem)
        return render_error(error.status_code if isinstance(error, HTTPException) else 500, "")

    async def failed(_: Request, error: Exception) -> Response:
        LOG.error("%s", error)
        return render_error(500, str(error))

    app = Starlette(
        routes=routes,
        exception_handlers={Refused: refused, HTTPException: refused, SqaError: failed},
        middleware=guards(
            address,
            render_error=render_error,
            needs_token=lambda scope: (route := asked(scope)) is not None and not route.public,
            programs=lambda scope: (route := asked(scope)) is not None and route.programs,
        ),
    )
    app.router.redirect_slashes = False
    return app
