"""The board of these tests, with the toy task, and its server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import board_database
import pytest
from stand_ins.board_server import Person, serving

from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.server import ServeConfig
from sqa_services.net.address import Address


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    opened = Board.open(BoardConfig(tmp_path / "board", tasks=("board_task:make",), db=board_database.fresh()))
    yield opened
    opened.engine.dispose()


@pytest.fixture
def organiser(board: Board) -> Iterator[Person]:
    """The organiser of the board's server, which takes 5 submissions a day."""
    config = ServeConfig(address=Address(token="sécret", max_body=3_000_000), per_day=5)
    with serving(board, config) as url:
        yield Person(url, "sécret")
