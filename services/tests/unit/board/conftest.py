"""Fixtures: a board with the toy task, and its server."""

from stand_ins.board_server import board, owner, submitter  # noqa: F401
