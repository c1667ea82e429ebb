"""HTTP connections within limits of number and of time (uvicorn).

A request has HEAD_SECONDS for its head, an answer WRITE_SECONDS for each piece that is taken, a connection IDLE_SECONDS
between requests.  Where there are as many connections as there may be, a new one takes the place of one that has asked
for nothing yet, else of one between two requests, else of one whose body is still to come, of each kind the one that
was quiet longest; only where all others are being answered the new one is closed.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from sqa.core.errors import ConfigError
from sqa_services.net.log import bound_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_SECONDS = 15.0  # from the opening, or from the first byte of a further request, to the end of its head
IDLE_SECONDS = 75  # between two requests of a connection
WRITE_SECONDS = 30.0  # for a client to take what waits to be sent
CONNECTIONS = 4_000  # at a time, if the system allows so many files
RESERVED = 256  # files that are not connections: the program's, and what is accepted before room is made
ACCEPTED = 64  # connections at a time
WAITING = 1_024  # connections that the system keeps until they are accepted
HEAD_BYTES = 1 << 14


def most_connections() -> int:
    """How many connections this process can hold."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS if files == resource.RLIM_INFINITY else max(16, min(CONNECTIONS, files - RESERVED))


class BoundedProtocol(H11Protocol):
    """A connection that ends in time."""

    most = 0  # connections; 0 = as many as this process can hold

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._kind = -1
        self._place()
        self._unsent = 0  # bytes that waited to be sent when it was last looked
        self._end: asyncio.TimerHandle | None = None
        self._close_in(HEAD_SECONDS)
        if len(self.connections) > (self.most or most_connections()):
            self._make_room()

    def data_received(self, data: bytes) -> None:
        was_reading = self._reading_head
        super().data_received(data)
        self._place()
        if not self._reading_head:
            self._keep_open()
        elif not was_reading or self._end is None:
            self._close_in(HEAD_SECONDS)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP and hang up; no second answer where the request has one, or one on its way."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True

    def on_response_complete(self) -> None:
        self._keep_open()
        super().on_response_complete()
        self._place()
        if self.transport.is_closing():
            self._watch_writing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._keep_open()

    def connection_lost(self, exc: Exception | None) -> None:
        self._keep_open()
        self._unset_keepalive_if_required()
        self._leave()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        self._watch_writing()

    def _watch_writing(self) -> None:
        self._unsent = 0
        self._look_at_writing()

    def _look_at_writing(self) -> None:
        """Close the connection if what waits to be sent has not changed since it was last looked: nothing, or stuck."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == self._unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        self._keep_open()
        self._end = self.loop.call_later(WRITE_SECONDS, self._look_at_writing)

    @property
    def _reading_head(self) -> bool:
        """Whether no request is being received or answered."""
        return self.cycle is None or self.cycle.response_complete

    def _close_in(self, seconds: float) -> None:
        self._keep_open()
        self._end = self.loop.call_later(seconds, self.transport.abort)

    def _keep_open(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _make_room(self) -> None:
        """Abort the connection that is missed least: in a crowd for every one that opens, so it is not searched for."""
        victim = next((other for kind in self._quiet for other in kind if other is not self), self)
        victim._leave()
        self.connections.discard(victim)  # by the time that it is lost others may have come
        victim.transport.abort()

    @property
    def _quiet(self) -> tuple[dict[BoundedProtocol, None], ...]:
        """Of this server, those that can be missed by kind, of each kind the one that was quiet longest first."""
        state = self.server_state
        assert isinstance(state, BoundedState)
        return state.quiet

    def _place(self) -> None:
        """Stand where its kind stands, as the last that was quiet."""
        if self.cycle is None:
            kind = 0
        elif self.cycle.response_complete:
            kind = 1
        else:
            kind = 2 if self.cycle.more_body else 3
        if kind == self._kind and kind != 1:
            return  # a byte of a head or of a body that drips does not make it wanted
        self._leave()
        self._kind = kind
        if kind < len(self._quiet):
            self._quiet[kind][self] = None

    def _leave(self) -> None:
        if 0 <= self._kind < len(self._quiet):
            self._quiet[self._kind].pop(self, None)
        self._kind = -1


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets for every address of a name.  Not to be had: ConfigError."""
    found: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            # asyncio sends small replies at once (TCP_NODELAY) only where the protocol is named; else some take 40 ms
            one = socket.socket(family, kind, protocol)
            found.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.setblocking(False)
    except OSError as error:
        for one in found:
            one.close()
        raise ConfigError(f"--host, --port: {host}:{port} cannot be listened on ({error.strerror or error})") from error
    return found


class BoundedState(ServerState):
    """What the connections of a server share."""

    def __init__(self) -> None:
        super().__init__()
        self.quiet: tuple[dict[BoundedProtocol, None], ...] = ({}, {}, {})  # asked nothing, between two, body to come


class BoundedServer(uvicorn.Server):
    """uvicorn with BoundedProtocol; takes bound sockets."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = BoundedState()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(WAITING)  # asyncio takes one number for how many wait and for how many it accepts at a time


def server_of(app: Any) -> BoundedServer:
    """A server of an ASGI application, to be run with sockets of `bind`."""
    return BoundedServer(
        uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            loop="asyncio",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=ACCEPTED,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
    )


def run_app(app: Any, host: str, port: int) -> None:
    """Serve until interrupted."""
    bound_logs()
    with _ends_quietly():
        server_of(app).run(sockets=bind(host, port))


@contextmanager
def _ends_quietly() -> Iterator[None]:
    """uvicorn raises the signal that ended it again; a server that was told to end has ended well."""
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
