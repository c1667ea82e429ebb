"""Fixtures: a board with the toy task."""

from stand_ins.board_server import board  # noqa: F401
