"""The board over HTTP: permissions, visible data, and invalid requests."""

import json
import os
from pathlib import Path
from threading import Event
from typing import Any

import board_task
import pytest
from board_task import model, submission
from sqlalchemy import update
from stand_ins.board_server import Person, invitation, signed_up
from stand_ins.processes import PATHS

from sqa.core.errors import DataError
from sqa.data.datasets import load_questions
from sqa.data.own_questions import record_of
from sqa_services.board import queue, worker
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.files import as_lines
from sqa_services.board.storage import ACCOUNTS, EVALUATIONS, INVITATIONS

TOY, ES = "/api/tasks/toy", "/api/tasks/sqa-es"


def test_submitted_model_reaches_the_leaderboard(board: Board, organiser: Person) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    reply = organiser.submit("m", model())
    assert reply.status_code == 201 and reply.json()["queued"] == 2
    worker.work(board, until_empty=True)
    ranked = organiser.get(f"{TOY}/leaderboard", weights="accuracy=1", dataset="data").json()
    assert ranked["rows"][0]["metrics"]["accuracy"] == 100.0 and "needs at least two" in ranked["refusal"]
    assert len(organiser.get(f"{TOY}/evaluations", state="done").json()) == 2
    assert [row["name"] for row in organiser.get(f"{TOY}/models").json()] == ["m"]
    assert "toy" in [task["code"] for task in organiser.get("/api/tasks").json()]


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
        ("POST", "/api/accounts", b"[" * 50_000, 422),
        ("POST", "/api/accounts", b'{"name": "\\ud800", "invitation": "x"}', 422),
        ("POST", f"{TOY}/models/m", b"", 405),
        ("GET", "/docs", None, 404),
    ],
)
def test_invalid_requests_get_a_4xx(organiser: Person, method: str, path: str, body: bytes | None, status: int) -> None:
    reply = organiser.ask(method, path, data=body)
    assert reply.status_code in (status, 400 if status == 422 else status) and "detail" in reply.json()


def test_writing_needs_a_token_and_reading_does_not(board: Board, organiser: Person) -> None:
    stranger = Person(organiser.url)
    page = stranger.get("/")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
        assert name in page.text and stranger.get(f"/{name}").headers["Content-Type"].startswith(kind)
    for given in ("", "wrong"):
        refused = Person(organiser.url, given).submit("m", model())
        assert refused.status_code == 401 and refused.headers["WWW-Authenticate"] == "Bearer"
    assert stranger.get("/api/tasks").status_code == 200 and board.models("toy") == []


def test_invitation_creates_one_account(board: Board, organiser: Person) -> None:
    def sign_up(name: str, code: str) -> Any:
        return Person(organiser.url).ask("POST", "/api/accounts", json={"name": name, "invitation": code})

    code, again = invitation(board), invitation(board)
    ann = sign_up("ann", code)
    assert ann.status_code == 201
    for token, status, me in ((ann.json()["token"], 200, {"name": "ann"}), (organiser.token, 200, {"name": None})):
        reply = Person(organiser.url, token).get("/api/me")
        assert (reply.status_code, reply.json()) == (status, me)
    assert Person(organiser.url).get("/api/me").status_code == 401
    used = sign_up("bob", code)
    assert used.status_code == 403 and "used up" in used.json()["detail"]
    assert sign_up("bob", "guessed").status_code == 403
    assert sign_up("ann", again).status_code == 409
    assert sign_up("bob", again).status_code == 201  # the failed sign-up did not use up the invitation
    with board.engine.begin() as connection:
        connection.execute(update(INVITATIONS).values(until=0.0, uses=9))
    assert sign_up("eve", again).status_code == 403
    with board.engine.connect() as connection:
        kept = str(connection.execute(ACCOUNTS.select()).all()) + str(connection.execute(INVITATIONS.select()).all())
    assert ann.json()["token"] not in kept and code not in kept


def test_only_owner_and_organiser_change_a_submission(board: Board, organiser: Person) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES)
    ann, bob = (signed_up(board, organiser.url, name) for name in ("ann", "bob"))
    path = f"{TOY}/models/m"
    registered = ann.submit("m?kind=config", model(refusal="no such thing")).json()
    assert (registered["owner"], registered["kind"]) == ("ann", "submission") and registered["created"] > 0
    worker.work(board, until_empty=True)
    for method, action in (("POST", "/withdraw"), ("POST", "/restore"), ("POST", "/requeue"), ("DELETE", "")):
        assert Person(organiser.url).ask(method, path + action).status_code == 401
        denied = bob.ask(method, path + action)
        assert denied.status_code == 403 and "another account" in denied.json()["detail"]
    assert ann.ask("POST", f"{path}/requeue").json() == {"queued": 1}
    assert board.evaluations("toy")[0]["state"] == "queued"
    assert ann.ask("POST", f"{path}/withdraw").status_code == 204
    assert worker.work(board, until_empty=True) == 0 and board.leaderboard("toy")["rows"] == []
    assert ann.ask("POST", f"{path}/requeue").status_code == 400
    assert organiser.ask("POST", f"{path}/restore").status_code == 204
    worker.work(board, until_empty=True)
    said = [event["text"] for event in organiser.get(f"{path}/log").json()]
    assert said[:2] == ["registered by ann; evaluations queued: 1", "data: failed: no such thing"]
    assert said[2:5] == ["1 failed evaluations queued again by ann", "withdrawn by ann", "restored by the organiser"]
    assert said[5] == said[1] and len(said) == 6
    assert ann.ask("DELETE", path).status_code == 204
    assert ann.get(f"{path}/log").status_code == 404 and board.evaluations("toy") == []
    with pytest.raises(DataError, match="missing from"):
        board.files.read("models/toy/m.submission")
    assert bob.submit("m", model()).status_code == 201  # the name is available again


def test_restoring_keeps_failures_deleting_removes_files(board: Board, organiser: Person) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    for name, more in (("good", {}), ("bad", {"refusal": "no such thing"})):
        organiser.submit(name, model(name, **more))
    worker.work(board, until_empty=True)
    for action in ("withdraw", "restore"):
        assert organiser.ask("POST", f"{TOY}/models/bad/{action}").status_code == 204
    assert {row["state"] for row in board.evaluations("toy") if row["model"] == "bad"} == {"failed"}
    assert organiser.ask("DELETE", f"{TOY}/models/good").status_code == 204
    for name in ("data", "robustness-data"):
        with pytest.raises(DataError, match="missing from"):
            board.files.read(f"predictions/toy/good/{name}.jsonl")


def test_only_the_organiser_perturbs_a_data_set(board: Board, organiser: Person) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES)
    path, asked = f"{TOY}/datasets/data/perturbations", {"json": {"kinds": ["casing"]}}
    ann = signed_up(board, organiser.url, "ann")
    for person, status in ((Person(organiser.url), 401), (ann, 403)):
        assert person.get(path, kind="casing").status_code == status
        assert person.ask("POST", path, **asked).status_code == status
    shown = organiser.get(path, kind="casing").json()["casing"]
    assert shown["n"] == 2 and board.datasets("toy")[0]["prefixes"] == []
    made = organiser.ask("POST", path, **asked)
    assert made.status_code == 201 and made.json() == {"prefixes": ["robustness"], "queued": 0}
    assert organiser.ask("POST", path, **asked).status_code == 409
    own = organiser.ask("POST", path, json={"kinds": ["file.py:build"]})
    assert own.status_code == 422  # a file would run on the server


# ----------------------------------------------------------------------------------------------------- at upload


def rows(page: str | None = None) -> list[dict[str, Any]]:
    return submission(lambda q, _: ((word, at + 1, page or q.page, at > 60) for at, word in enumerate(q.words)))


def test_upload_lists_all_problems_of_a_submission(board: Board, organiser: Person, tmp_path: Path) -> None:
    board.register_dataset("sqa-es", "mini", "mini-es", ["casing"])
    first = load_questions("mini-es")[0]
    wrong = [row for row in rows() if row["question"] != first.id]
    wrong[3]["g"], wrong[200]["g"] = 10_000, 0
    unanswered = [{key: row[key] for key in ("question", "step", "token", "g")} for row in rows()]
    for data, count, reason in (
        (as_lines(wrong), 3, f"mini: 0: question {first.id}: has no rows"),
        (as_lines(unanswered), 1, "expected wins need answers"),
    ):
        reply = organiser.submit("m", data, "sqa-es")
        reasons = reply.json()["reasons"]
        assert reply.status_code == 400 and reply.json()["more"] == 0 and len(reasons) == count
        assert any(reason in text for text in reasons) and all(text.startswith("mini: ") for text in reasons)
    broken = organiser.submit("m", b"\n".join([b"{"] * 1500), "sqa-es").json()
    assert len(broken["reasons"]) == 1000 and broken["more"] == 500 and "1495 more" in broken["detail"]
    assert board.models("sqa-es") == []
    question = {"id": "q1", "language": "es", "source": ["El rey vive."], "reference": ["X."], "page": "Spain"}
    (tmp_path / "q.jsonl").write_text(json.dumps(question))
    board.register_dataset("sqa-es", "other", str(tmp_path / "q.jsonl"))
    reply = organiser.submit("m", as_lines(rows()), "sqa-es")
    assert reply.status_code == 201 and list(reply.json()["cannot"]) == ["other"]


# ------------------------------------------------------------------------------------------------------- answers


def test_answers_and_references_are_never_shown(board: Board, organiser: Person, tmp_path: Path) -> None:
    path, questions = tmp_path / "some.jsonl", load_questions("mini-es")[:6]
    path.write_bytes(as_lines(map(record_of, questions)))
    board.register_dataset("sqa-es", "some", str(path), ["casing"])
    assert organiser.submit("m", as_lines(rows("Nowhere")), "sqa-es").json()["queued"] == 2
    worker.work(board, until_empty=True)
    ask = Person(organiser.url).get
    inputs = [f"datasets/{prefix}some/examples" for prefix in ("", "robustness-")]
    said = "".join(ask(f"{ES}/{p}").text for p in (*inputs, "evaluations", "leaderboard", "models/m/log", "datasets"))
    assert all(f'"{question.id}"' in said for question in questions)
    assert not [q for q in questions if q.reference_text[:30] in said]
    assert not [q.page for q in questions if len(q.page) > 12 and f'"{q.page}"' in said]


# ------------------------------------------------------------------------------------------------------- workers


def test_status_counts_running_and_queued(board: Board, organiser: Person) -> None:
    def status() -> dict[str, Any]:
        return organiser.get("/api/status").json()

    assert status() == {"running": 0, "queued": 0, "guarded": True}
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    board.register_model("toy", "m", "submission", model())
    assert (status()["running"], status()["queued"]) == (0, 2)
    for lease, running in ((60.0, 1), (-1.0, 0)):  # the worker of an expired lease is dead
        queue.claim(board.engine, lease)
        assert status()["running"] == running
        with board.engine.begin() as connection:
            connection.execute(update(EVALUATIONS).values(lease_until=0.0))


def test_worker_ends_with_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATHS)
    board = Board.open(BoardConfig(tmp_path / "board", tasks=("board_task:make",)))
    board.register_dataset("toy", "data", board_task.EXAMPLES)
    board.register_model("toy", "m", "submission", model())
    with worker.beside(board):
        for _ in range(1200):  # one minute, for a busy machine
            if not any(queue.to_do(board.engine).values()):
                break
            Event().wait(0.05)
        assert board.evaluations("toy")[0]["state"] == "done"
    board.register_model("toy", "late", "submission", model())
    Event().wait(3)  # longer than a worker sleeps
    assert board.evaluations("toy")[1]["state"] == "queued"
    assert worker.work(board, beside=os.getpid()) == 0  # the server is another process, so the worker ends at once
    board.engine.dispose()
