"""A board over HTTP on a free port of loopback."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from sqa.board.board import Board
from sqa.board.server import ServeConfig, make_app


@contextmanager
def serving(board: Board, config: ServeConfig | None = None) -> Iterator[str]:
    """The URL of a server that runs in a thread until the block ends."""
    settings: Any = uvicorn.Config(
        make_app(board, config or ServeConfig()), host="127.0.0.1", port=0, log_level="error", lifespan="off"
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.started
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        board.engine.dispose()
        assert not thread.is_alive()
