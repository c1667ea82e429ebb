"""HTTP connections within limits of number and of time: uvicorn's own, and two that it lacks.

A connection has HEAD_SECONDS for the head of a request, IDLE_SECONDS between two; what it was sent it has to take
within TAKE_SECONDS.  Beyond CONNECTIONS a request is answered 503.  Of uvicorn alone connections that are silent, send
half a head, drip one, or take no answer stay for ever (services/tests/unit/net/test_connections.py).  Nothing here
tells one client from another: that is for a proxy before the server (docs/trust.md).

The log is bounded, too: at most LINES a minute, each of LONGEST characters at most.
"""

import asyncio
import logging
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sqa.core.errors import ConfigError
from sqa_services.net.address import Address

HEAD_SECONDS = 15.0  # from the opening, or from the first byte of a further request, to the end of its head
IDLE_SECONDS = 75  # between two requests of a connection
TAKE_SECONDS = 30.0  # for a client to take what waits to be sent
CONNECTIONS = 4_000  # at a time, if the system allows so many files
RESERVED = 256  # files that are not connections
WAITING = 1_024  # connections that the system keeps until they are accepted
HEAD_BYTES = 1 << 14
LINES = 60  # in a minute; further ones are counted, and the count is logged with the next line
LONGEST = 2_000  # characters of one message, a traceback's last ones
LOG = logging.getLogger("sqa_services.net")


def most_connections() -> int:
    """How many connections this process can hold."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS if files == resource.RLIM_INFINITY else max(16, min(CONNECTIONS, files - RESERVED))


class TimedProtocol(H11Protocol):
    """uvicorn's connection, which by itself waits for ever for the head of a request and for an answer to be taken."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else some small replies take 40 ms
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(TAKE_SECONDS * 1000))
        self._end: asyncio.TimerHandle | None = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._keep_open()
        elif self._end is None:
            self._end = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def on_response_complete(self) -> None:
        self._keep_open()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._keep_open()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP and hang up; no second answer where the request has one, or one on its way."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True

    def _keep_open(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None


class Bounded(logging.Handler):
    """Writes to stderr."""

    def __init__(self, lines: int = LINES) -> None:
        super().__init__()
        self._lines, self._minute, self._records = lines, 0, 0

    def emit(self, record: logging.LogRecord) -> None:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            if self._records > self._lines:
                print(f"sqa: {self._records - self._lines} messages were left out", file=sys.stderr, flush=True)
            self._minute, self._records = minute, 0
        self._records += 1
        if self._records <= self._lines:
            print(self._text(record), file=sys.stderr, flush=True)

    def _text(self, record: logging.LogRecord) -> str:
        """The message without line ends; what failed on the way behind it, as far as there is room."""
        text = " ".join(record.getMessage().split())[:LONGEST]
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)[-LONGEST:]
        return text if text.startswith("sqa: ") else f"sqa: {text}"


def bound_logs() -> None:
    """Let this process's servers say what they say through one bounded handler."""
    handler = Bounded()
    for name in ("sqa_services.net", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.  Not available: ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=WAITING)
    except OSError as error:
        problem = f"--host, --port: {host}:{port} cannot be listened on ({error.strerror or error})"
        raise ConfigError(problem) from error


def server_of(app: Any) -> uvicorn.Server:
    """A server of an ASGI application, to be run with a socket of `bind`."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=TimedProtocol,
            ws="none",
            loop="asyncio",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=WAITING,
            limit_concurrency=most_connections(),
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
    )


def run_app(app: Any, address: Address) -> None:
    """Serve until interrupted.  uvicorn raises again the signal that ended it; the exit status is 0 all the same."""
    bound_logs()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with suppress(KeyboardInterrupt):
        server_of(app).run(sockets=[bind(address.host, address.port)])
