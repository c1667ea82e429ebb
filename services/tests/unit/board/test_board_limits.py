"""Limits: a daily limit of submissions, and the cost of checking them."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from board_task import model
from stand_ins.board_server import Person

from sqa.core import DataError
from sqa.data.datasets import load_questions
from sqa_services.board import sqa_task
from sqa_services.board.board import Board
from sqa_services.protocols import submission as protocol


def test_daily_limit_is_atomic(board: Board, owner: Person, submitter: Person) -> None:
    """Regression test: with a limit of five a day, the board accepted 24 of 24 simultaneous submissions."""
    with ThreadPoolExecutor(24) as pool:
        replies = list(pool.map(lambda i: submitter.submit(f"m{i}", model()).status_code, range(24)))
    assert replies.count(201) == 5 == len(board.models("toy")) and set(replies) == {201, 429}


def test_daily_limit_counts_every_submission(board: Board, owner: Person, submitter: Person) -> None:
    """The limit covers refused and deleted submissions, but not taken names and not owners."""
    assert [submitter.submit(f"m{i}", model()).status_code for i in range(3)] == [201] * 3
    assert submitter.submit("m0", model()).status_code == 409
    assert owner.ask("DELETE", "/api/tasks/toy/models/m0").status_code == 204
    assert [submitter.submit("bad", b"{").status_code for _ in range(3)] == [400, 400, 429]
    late = submitter.submit("late", model())
    assert late.status_code == 429 and "5 submissions are used up" in late.json()["detail"]
    assert owner.submit("ours", model()).status_code == 201
    with board.database.writing() as db:
        db.execute("UPDATE days SET day = day - 1")
    assert submitter.submit("late", model()).status_code == 201


# ------------------------------------------------------------------------------------------------------- costs


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which every value checked against the schema is appended."""
    original, values = protocol.converted, list[object]()

    def counted(where: str, value: object, kind: type[Any]) -> Any:
        values.append(value)
        return original(where, value, kind)

    monkeypatch.setattr(protocol, "converted", counted)
    return values


HEAVY = {  # refused submissions of 2 MB, each with the maximum number of rows that may be checked
    "rows without fields": (b'{"question":"x"}\n' * 125_000, 10_000),
    "one long row": (b'{"question":"' + b"x" * 2_000_000 + b'"}', 0),
    "wrong values": (b'{"question":1,"step":"a","token":2,"g":"b"}\n' * 45_000, 10_000),
}


@pytest.mark.parametrize("heavy", HEAVY)
def test_refused_submission_is_not_read_to_its_end(heavy: str, checks: list[object]) -> None:
    """Regression test: checking a submission of 13 MB took 18 seconds, and six at once took 964 MiB."""
    data, most = HEAVY[heavy]
    with pytest.raises(DataError) as error:
        sqa_task.spanish().check_model("submission", data)
    assert len(checks) <= most and len(str(error.value)) < 2000
    checks.clear()
    problems: list[str] = []
    assert protocol.traces_of(data.decode().splitlines(), load_questions("mini-es"), problems) == []
    assert len(checks) <= most and len(problems) <= 30_000


def test_submissions_are_checked_one_at_a_time(board: Board, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    original, now, most = Board.register_model, [0], [0]

    def slow(self: Board, *arguments: Any) -> Any:
        now[0] += 1
        most[0] = max(most[0], now[0])
        time.sleep(0.05)  # long enough for another submission to arrive
        now[0] -= 1
        return original(self, *arguments)

    monkeypatch.setattr(Board, "register_model", slow)
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda i: owner.submit(f"m{i}", model()).status_code, range(6)))
    assert most == [1] and replies == [201] * 6
