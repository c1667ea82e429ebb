"""Fixtures for the tests of language models behind a server."""

from functools import partial

import pytest
from stand_ins.chat_server import quick_guesser


@pytest.fixture
def guesser_of(tmp_path, monkeypatch):
    """Return `quick_guesser` with a cache that only this test uses."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return partial(quick_guesser, tmp_path / "replies.sqlite")
