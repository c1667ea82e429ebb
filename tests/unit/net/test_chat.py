"""The pauses between repeated requests."""

from sqa.net import chat
from sqa.net.chat import attempts


def test_attempts_pause_longer_each_time(monkeypatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(chat.time, "sleep", pauses.append)
    assert [*attempts(1.0, 3.0, number=4)] == [False, False, False, True] and pauses == [1.0, 2.0, 3.0]
    assert [*attempts(1.0, 3.0, number=1)] == [True] and len(pauses) == 3
