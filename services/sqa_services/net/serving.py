"""Run an application under uvicorn, within uvicorn's own limits.

A client that sends its request slowly, or does not read the response, can hold a connection for an unlimited time.  A
server that strangers can reach therefore needs a proxy: services/nginx.conf, explained in docs/trust.md.
"""

import logging
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

import uvicorn

from sqa.core.errors import ConfigError
from sqa_services.net.address import Address

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
        problem = f"--host, --port: cannot listen on {host}:{port} ({error.strerror or error})"
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


def run_app(app: Any, address: Address) -> None:
    """Serve until interrupted.

    Uvicorn raises the signal that ended it again; the exit status is 0 nevertheless.
    """
    logging.basicConfig(format="sqa: %(message)s", level=logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with suppress(KeyboardInterrupt):
        server_of(app).run(sockets=[bind(address.host, address.port)])
