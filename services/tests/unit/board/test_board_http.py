"""The board over HTTP: permissions, visible data, and invalid requests."""

from pathlib import Path
from typing import Any

import board_task
import pytest
from board_task import model, submission
from stand_ins.board_server import Person

from sqa.core import ConfigError, DataError
from sqa.data.datasets import load_questions
from sqa.data.own_questions import record_of
from sqa_services.board import queue, worker
from sqa_services.board.board import Board
from sqa_services.board.storage import as_lines, stored
from sqa_services.net.guard import Address

TOY, ES = "/api/tasks/toy", "/api/tasks/sqa-es"


def test_submitted_model_reaches_the_leaderboard(board: Board, owner: Person) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    reply = owner.submit("m", model())
    assert reply.status_code == 201 and reply.json()["queued"] == 2
    worker.work(board, until_empty=True)
    ranked = owner.get(f"{TOY}/leaderboard", weights="accuracy=1", dataset="data").json()
    assert ranked["rows"][0]["metrics"]["accuracy"] == 100.0 and "needs at least two" in ranked["refusal"]
    assert len(owner.get(f"{TOY}/evaluations", state="done").json()) == 2
    assert [row["name"] for row in owner.get(f"{TOY}/models").json()] == ["m"]
    assert "toy" in [task["code"] for task in owner.get("/api/tasks").json()]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/tasks/nothing/models", None, 404),
        ("GET", f"{TOY}/leaderboard?weights=accuracy=0", None, 400),
        ("GET", f"{TOY}/leaderboard?dataset=x", None, 404),
        ("PUT", f"{TOY}/models/m", b"{", 400),
        ("PUT", f"{ES}/models/m", b"\xff", 400),
        ("PUT", f"{ES}/models/m", b"dataset: {name: mini-es}\ntranslator: {name: waitk}\n", 400),  # not a valid run
        ("PUT", f"{ES}/models/" + "m" * 64, b"{}", 422),
        ("POST", f"{TOY}/models/m", b"", 405),
        ("GET", "/docs", None, 404),
    ],
)
def test_invalid_requests_get_a_4xx(owner: Person, method: str, path: str, body: bytes | None, status: int) -> None:
    reply = owner.ask(method, path, data=body)
    assert reply.status_code in (status, 400 if status == 422 else status) and "detail" in reply.json()


def test_writing_needs_a_token_and_reading_does_not(board: Board, owner: Person) -> None:
    stranger = Person(owner.url)
    page = stranger.get("/")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
        assert name in page.text and stranger.get(f"/{name}").headers["Content-Type"].startswith(kind)
    for given in ("", "wrong"):
        refused = Person(owner.url, given).submit("m", model())
        assert refused.status_code == 401 and refused.headers["WWW-Authenticate"] == "Bearer"
    assert stranger.get("/api/tasks").status_code == 200 and board.models("toy") == []


@pytest.mark.parametrize(("owners", "submitters"), [(None, "b" * 16), ("b" * 16, "b" * 16), ("a" * 16, "b")])
def test_wrong_tokens_are_refused(owners: str | None, submitters: str) -> None:
    with pytest.raises(ConfigError, match="--submit-token-file"):
        Address(token=owners, submit_token=submitters)


def test_only_owners_change_a_model(board: Board, owner: Person, submitter: Person) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES)
    path = f"{TOY}/models/m"
    for person, role in ((owner, "owner"), (submitter, "submitter")):
        assert person.get("/api/me").json() == {"role": role}
    assert Person(owner.url).get("/api/me").status_code == 401
    assert submitter.submit("m?kind=config", model(refusal="no such thing")).json()["kind"] == "submission"
    worker.work(board, until_empty=True)
    for method, action in (("POST", "/requeue"), ("DELETE", "")):
        assert Person(owner.url).ask(method, path + action).status_code == 401
        denied = submitter.ask(method, path + action)
        assert denied.status_code == 403 and "the owners' token" in denied.json()["detail"]
    assert owner.ask("POST", f"{path}/requeue").json() == {"queued": 1}
    assert board.evaluations("toy")[0]["state"] == "queued"
    worker.work(board, until_empty=True)
    assert board.evaluations("toy")[0]["error"] == "no such thing"
    assert owner.ask("DELETE", path).status_code == 204
    assert owner.ask("DELETE", path).status_code == 404 and board.evaluations("toy") == []
    with pytest.raises(DataError, match="missing from"):
        stored(board.files, "models/toy/m.submission")
    assert submitter.submit("m", model()).status_code == 201  # the name is available again


# ----------------------------------------------------------------------------------------------------- at upload


def rows(page: str | None = None) -> list[dict[str, Any]]:
    return submission(lambda q, _: ((word, at + 1, page or q.page, at > 60) for at, word in enumerate(q.words)))


def test_upload_lists_the_problems_of_a_submission(board: Board, owner: Person) -> None:
    refused = owner.submit("m", b"\n".join([b"{"] * 1500), "sqa-es")
    broken = refused.json()
    assert refused.status_code == 400 and "1495 more" in broken["detail"] and board.models("sqa-es") == []


# ------------------------------------------------------------------------------------------------------- answers


def test_answers_and_references_are_never_shown(board: Board, owner: Person, tmp_path: Path) -> None:
    path, questions = tmp_path / "some.jsonl", load_questions("mini-es")[:6]
    path.write_bytes(as_lines(map(record_of, questions)))
    board.register_dataset("sqa-es", "some", str(path), ["casing"])
    assert owner.submit("m", as_lines(rows("Nowhere")), "sqa-es").json()["queued"] == 2
    worker.work(board, until_empty=True)
    ask = Person(owner.url).get
    inputs = [f"datasets/{prefix}some/examples" for prefix in ("", "robustness-")]
    said = "".join(ask(f"{ES}/{p}").text for p in (*inputs, "evaluations", "leaderboard", "datasets"))
    assert all(f'"{question.id}"' in said for question in questions)
    assert not [q for q in questions if q.reference_text[:30] in said]
    assert not [q.page for q in questions if len(q.page) > 12 and f'"{q.page}"' in said]


# ------------------------------------------------------------------------------------------------------- workers


def test_status_counts_running_and_queued(board: Board, owner: Person) -> None:
    def status() -> dict[str, Any]:
        return owner.get("/api/status").json()

    assert status() == {"running": 0, "queued": 0, "guarded": True}
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    board.register_model("toy", "m", "submission", model())
    assert (status()["running"], status()["queued"]) == (0, 2)
    for lease, running in ((60.0, 1), (-1.0, 0)):  # the worker of an expired lease is dead
        queue.claim(board.database, lease)
        assert status()["running"] == running
        with board.database.writing() as db:
            db.execute("UPDATE evaluations SET lease_until = 0")
