"""An application on a free loopback port, served by the project's own server."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn.server
from starlette.applications import Starlette
from starlette.routing import Route

from sqa_services.net.server import Handler, bind, server_of


class _Hurried:
    """The asyncio module with shorter sleeps, for uvicorn, which otherwise takes 0.3 s to shut down."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(delay / 10)


vars(uvicorn.server)["asyncio"] = _Hurried()


def anything(answer: Handler) -> Starlette:
    """Return an application that answers all requests with one handler."""
    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST", "PUT", "DELETE"])])


@contextmanager
def serving_app(app: Any) -> Iterator[str]:
    """Yield the URL of an ASGI application that runs in a thread until the block ends."""
    server, listening = server_of(app), bind("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.started
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
