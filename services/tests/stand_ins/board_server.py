"""A board over HTTP on a free port of loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stand_ins.http_server import serving_app

from sqa_services.board.board import Board
from sqa_services.board.server import ServeConfig, make_app


@contextmanager
def serving(board: Board, config: ServeConfig | None = None) -> Iterator[str]:
    """The URL of a server that runs in a thread until the block ends."""
    try:
        with serving_app(make_app(board, config or ServeConfig())) as url:
            yield url
    finally:
        board.engine.dispose()
