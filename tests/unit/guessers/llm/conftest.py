"""What the tests of language models behind a server share."""

from functools import partial

import pytest
from stand_ins.chat_server import quick_guesser


@pytest.fixture
def guesser_of(tmp_path, monkeypatch):
    """`quick_guesser` with a cache of the test's own."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return partial(quick_guesser, tmp_path / "replies.sqlite")
