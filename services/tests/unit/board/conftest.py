"""Fixtures: a board with the toy task, and its server."""

import pytest
from stand_ins.board_server import board, owner, submitter  # noqa: F401

from sqa_services.board import sqa_task


@pytest.fixture(autouse=True)
def no_training_tossups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not read the training tossups, which would take longer than these tests."""
    if request.node.get_closest_marker("mirror") is None:
        monkeypatch.setattr(sqa_task, "page_categories", dict)
