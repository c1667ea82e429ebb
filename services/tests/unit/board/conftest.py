"""The board of these tests, with the toy task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import board_database
import pytest

from sqa_services.board.board import Board, BoardConfig


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    opened = Board.open(BoardConfig(tmp_path / "board", tasks=("board_task:make",), db=board_database.fresh()))
    yield opened
    opened.engine.dispose()
