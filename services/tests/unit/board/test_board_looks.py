"""Limits on what the scores reveal about hidden answers: rounding, and a daily quota of submissions."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from board_task import Row, model, submission
from sqlalchemy import update
from stand_ins.board_server import Person, invitation, signed_up

from sqa.core.errors import DataError
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa_services.board import server, sqa_task, worker
from sqa_services.board.board import Board
from sqa_services.board.files import as_lines
from sqa_services.board.standing.rounded import rounded
from sqa_services.board.storage import ACCOUNTS
from sqa_services.protocols import submission as protocol

# --------------------------------------------------------------------------------------------- information in a view


def guessing(right: set[int]) -> list[dict[str, Any]]:
    """Return a submission that buzzes on each question at a different share of its source.

    Without rounding, the total score therefore identifies the correct answers.
    """

    def rows(q: Question, i: int) -> Iterator[Row]:
        n = len(q.words)
        for step, word in enumerate(q.words):
            yield word, step + 1, q.page if i in right else f"page {i}", step == n // 2 + i * (n // 2) // 46

    return submission(rows)


def test_closed_set_shows_only_its_rounded_score(board: Board, organiser: Person) -> None:
    """Regression test: scores at full precision revealed with one submission which of 45 guesses were correct."""
    for phase in ("closed", "open"):
        board.register_dataset("sqa-es", phase, "mini-es", ["casing"], phase=phase)
    for name, right in (("one", {3, 8, 20}), ("two", {3, 9, 20}), ("all", set(range(45)))):
        rows = guessing(right)
        copies = board.examples("sqa-es", "robustness-closed")
        of = {copy["input_id"]: copy["id"] for copy in copies}
        rows += [{**row, "question": of[row["question"]]} for row in rows if row["question"] in of]
        board.register_model("sqa-es", name, "submission", as_lines(rows))
    worker.work(board, until_empty=True)
    exact = {(e["model"], e["dataset"], e["prefix"]): e["result"] for e in board.evaluations("sqa-es")}
    evaluations = organiser.get("/api/tasks/sqa-es/evaluations").json()
    shown = {(e["model"], e["dataset"], e["prefix"]): e["result"] for e in evaluations}
    for system in ("one", "two", "all"):
        for prefix in ("", "robustness"):
            assert shown[system, "open", prefix] == exact[system, "open", prefix]
        result = shown[system, "closed", ""]
        metadata = json.loads(result["metadata_json"])
        assert set(metadata) == {"ew", "al", "ap", "dal", "perf_by_tag"} and metadata["perf_by_tag"] == []
        assert metadata["ew"] == result["perf"] in (0.0, 0.2, 0.4, 0.6, 0.8)
        assert abs(result["perf"] - exact[system, "closed", ""]["perf"]) < 0.2
        [transform] = json.loads(shown[system, "closed", "robustness"]["metadata_json"])["transforms"]
        assert set(transform) == {"transform", "n", "unperturbed_percent"}
    for dataset in ("closed", "open"):
        rows = organiser.get("/api/tasks/sqa-es/leaderboard", dataset=dataset, weights="ew=1").json()["rows"]
        ranked = [row for row in rows if row["rank"]]  # "all" knows too much too early
        kept = dataset == "closed"
        assert len(ranked) == 2 and all(
            (row["interval"] is None, row["places"] is None) == (kept, kept) for row in ranked
        )
        assert {"ew", "dal", "robustness"} <= set(ranked[0]["metrics"])
    precise = {row["model"]: row["metrics"]["ew"] for row in board.leaderboard("sqa-es", datasets=["closed"])["rows"]}
    assert precise["one"] == exact["one", "closed", ""]["perf"]  # the owner of the board sees exact numbers


@pytest.mark.parametrize(
    ("metric", "examples", "value", "steps"),
    [
        ("ew", 45, 0.258713, (0.2, 0.4)),
        ("ew", 147, 0.258713, (0.25, 0.3)),
        ("ew", 511, 0.131402, (0.12, 0.14)),
        ("qa_accuracy", 600, 0.5, (0.5,)),
        ("corpus_bleu", 147, 28.83, (25.0, 30.0)),
        ("accuracy", 2000, 93.89, (93.5, 94.0)),
    ],
)
def test_score_step_equals_six_examples(metric: str, examples: int, value: float, steps: tuple[float, ...]) -> None:
    assert {rounded(metric, value, examples, f"key {i}") for i in range(200)} == set(steps)


# ------------------------------------------------------------------------------------------------------ number of views


def test_daily_quota_is_atomic(board: Board, organiser: Person) -> None:
    """Regression test: with a quota of five a day, the board accepted 24 of 24 simultaneous submissions."""
    ann = signed_up(board, organiser.url, "ann")
    with ThreadPoolExecutor(24) as pool:
        replies = list(pool.map(lambda i: ann.submit(f"m{i}", model()).status_code, range(24)))
    assert replies.count(201) == 5 == len(board.models("toy")) and set(replies) == {201, 429}


def test_daily_quota_counts_every_submission(board: Board, organiser: Person) -> None:
    """The quota covers all accounts of an invitation, and refused and deleted submissions, but not taken names."""
    code = invitation(board, uses=3)
    people = [signed_up(board, organiser.url, name, code) for name in ("ann", "ann-2", "ann-3")]
    assert [person.submit(f"m{i}", model()).status_code for i, person in enumerate(people)] == [201] * 3
    assert people[0].submit("m0", model()).status_code == 409
    assert people[0].ask("DELETE", "/api/tasks/toy/models/m0").status_code == 204
    assert [person.submit("bad", b"{").status_code for person in people] == [400, 400, 429]
    late = people[0].submit("late", model())
    assert late.status_code == 429 and "5 submissions are used up" in late.json()["detail"]
    assert signed_up(board, organiser.url, "bob").submit("bobs", model()).status_code == 201
    with board.engine.begin() as connection:
        connection.execute(update(ACCOUNTS).values(day=ACCOUNTS.c.day - 1))
    assert people[0].submit("late", model()).status_code == 201


# ------------------------------------------------------------------------------------------------------ cost of a view


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which every value checked against the schema is appended."""
    original, values = protocol.shape_problems, list[object]()

    def counted(model: Any, value: object) -> list[str]:
        values.append(value)
        return original(model, value)

    monkeypatch.setattr(protocol, "shape_problems", counted)
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
    assert len(checks) <= most and len(error.value.reasons) <= 10_000 and max(map(len, error.value.reasons)) < 1000
    checks.clear()
    problems: list[str] = []
    assert protocol.traces_of(data.decode().splitlines(), load_questions("mini-es"), problems) == []
    assert len(checks) <= most and len(problems) <= 30_000


def test_submissions_are_checked_one_at_a_time(
    board: Board, organiser: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, now, most, refused = Board.register_model, [0], [0], threading.Event()

    def slow(self: Board, *arguments: Any) -> Any:
        now[0] += 1
        most[0] = max(most[0], now[0])
        refused.wait(30)  # until another submission is refused
        try:
            return original(self, *arguments)
        finally:
            now[0] -= 1

    monkeypatch.setattr(Board, "register_model", slow)
    monkeypatch.setattr(server, "MOST_HELD", 200)  # three submissions

    def submit(number: int) -> int:
        status = organiser.submit(f"m{number}", model()).status_code
        if status == 503:
            refused.set()
        return status

    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(submit, range(12)))
    assert most == [1] and set(replies) == {201, 503} and len(board.models("toy")) == replies.count(201) >= 3
    assert organiser.submit("later", model()).status_code == 201
