"""The board of these tests, with the toy task."""

from __future__ import annotations

from stand_ins.board_server import board  # noqa: F401
