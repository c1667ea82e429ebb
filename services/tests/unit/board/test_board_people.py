"""Who may do what over HTTP, what becomes of a submission, and what leaves the board of each phase of data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import board_task
import pytest
import requests
from sqlalchemy import update
from stand_ins.board_server import serving

from sqa.core.errors import DataError
from sqa.data.datasets import load_questions
from sqa_services.board import accounts, worker
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.files import as_lines
from sqa_services.board.server import ServeConfig
from sqa_services.board.storage import ACCOUNTS, INVITATIONS
from sqa_services.net.address import Address

ADMIN = {"Authorization": "Bearer admin"}


@pytest.fixture
def url(board: Board) -> Iterator[str]:
    with serving(board, ServeConfig(address=Address(token="admin"), per_day=3)) as url:
        yield url


def model(name: str, **more: object) -> bytes:
    return json.dumps({"name": name, "answers": {"eins": "a", "zwei": "b", "": "x"}} | more).encode()


def account(board: Board, url: str, name: str) -> dict[str, str]:
    reply = requests.post(f"{url}/api/accounts", json={"name": name, **invited(board)})
    assert reply.status_code == 201
    return {"Authorization": f"Bearer {reply.json()['token']}"}


def invited(board: Board) -> dict[str, str]:
    return {"invitation": accounts.invite(board.engine)["invitation"]}


def test_an_invitation_makes_one_account(board: Board, url: str) -> None:
    code = invited(board)
    ann = requests.post(f"{url}/api/accounts", json={"name": "ann", **code})
    assert ann.status_code == 201
    headers = {"Authorization": f"Bearer {ann.json()['token']}"}
    assert requests.get(f"{url}/api/me", headers=headers).json() == {"name": "ann"}
    assert requests.get(f"{url}/api/me", headers=ADMIN).json() == {"name": None}
    assert requests.get(f"{url}/api/me").status_code == 401
    used = requests.post(f"{url}/api/accounts", json={"name": "bob", **code})
    assert used.status_code == 403 and "used up" in used.json()["detail"]
    assert requests.post(f"{url}/api/accounts", json={"name": "bob", "invitation": "guessed"}).status_code == 403
    again = invited(board)
    assert requests.post(f"{url}/api/accounts", json={"name": "ann", **again}).status_code == 409
    assert requests.post(f"{url}/api/accounts", json={"name": "bob", **again}).status_code == 201  # it was not used up
    with board.engine.begin() as connection:
        connection.execute(update(INVITATIONS).values(until=0.0, uses=9))
    assert requests.post(f"{url}/api/accounts", json={"name": "eve", **again}).status_code == 403
    with board.engine.connect() as connection:
        kept = str(connection.execute(ACCOUNTS.select()).all()) + str(connection.execute(INVITATIONS.select()).all())
    assert ann.json()["token"] not in kept and code["invitation"] not in kept


def test_only_its_owner_and_the_organiser_change_a_submission(board: Board, url: str) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES)
    ann, bob = account(board, url, "ann"), account(board, url, "bob")
    path = f"{url}/api/tasks/toy/models/m"
    assert requests.put(path, data=model("m")).status_code == 401
    registered = requests.put(path, data=model("m", refusal="no such thing"), headers=ann).json()
    assert registered["owner"] == "ann" and registered["created"] > 0 and registered["kind"] == "submission"
    worker.work(board, until_empty=True)
    for method, where in (("POST", "withdraw"), ("POST", "restore"), ("POST", "requeue"), ("DELETE", "")):
        assert requests.request(method, f"{path}/{where}".rstrip("/")).status_code == 401
        denied = requests.request(method, f"{path}/{where}".rstrip("/"), headers=bob)
        assert denied.status_code == 403 and "another account" in denied.json()["detail"]
    assert requests.post(f"{path}/requeue", headers=ann).json() == {"queued": 1}
    assert board.evaluations("toy")[0]["state"] == "queued"
    assert requests.post(f"{path}/withdraw", headers=ann).status_code == 204
    assert worker.work(board, until_empty=True) == 0 and board.leaderboard("toy")["rows"] == []
    assert requests.post(f"{path}/requeue", headers=ann).status_code == 400
    assert requests.post(f"{path}/restore", headers=ADMIN).status_code == 204
    worker.work(board, until_empty=True)
    said = [event["text"] for event in requests.get(f"{path}/log").json()]
    assert said[:2] == ["registered by ann; evaluations queued: 1", "data: failed: no such thing"]
    assert said[2:5] == ["queued again by ann: 1 that failed", "withdrawn by ann", "restored by the organiser"]
    assert said[5] == said[1] and len(said) == 6
    assert requests.delete(path, headers=ann).status_code == 204
    assert requests.get(f"{path}/log").status_code == 404 and board.evaluations("toy") == []
    with pytest.raises(DataError, match="is missing"):
        board.files.read("models/toy/m.submission")
    assert requests.put(path, data=model("m"), headers=bob).status_code == 201  # the name is free again


def test_submissions_of_a_day_are_limited_deleted_ones_counted(board: Board, url: str) -> None:
    ann = account(board, url, "ann")
    for name in ("a", "b", "c"):
        assert requests.put(f"{url}/api/tasks/toy/models/{name}", data=model(name), headers=ann).status_code == 201
    assert requests.delete(f"{url}/api/tasks/toy/models/a", headers=ann).status_code == 204
    late = requests.put(f"{url}/api/tasks/toy/models/d", data=model("d"), headers=ann)
    assert late.status_code == 429 and "3 submissions a day" in late.json()["detail"]
    with board.engine.begin() as connection:
        connection.execute(update(ACCOUNTS).values(day=ACCOUNTS.c.day - 1))
    assert requests.put(f"{url}/api/tasks/toy/models/d", data=model("d"), headers=ann).status_code == 201


def test_a_file_is_never_taken_for_a_run(board: Board, url: str) -> None:
    ann = account(board, url, "ann")
    config = b"dataset: {name: mini-es}\ntranslator: {name: waitk}\nguesser: {name: bm25}\nbuzzer: {name: mlp}\n"
    assert requests.put(f"{url}/api/tasks/sqa-es/models/m", data=config, headers=ann).status_code == 400
    assert requests.put(f"{url}/api/tasks/toy/models/m?kind=config", data=model("m"), headers=ann).status_code == 201
    assert board.models("toy")[0]["kind"] == "submission"


# ----------------------------------------------------------------------------------------------------- at upload


def rows(page: str | None = None, answered: bool = True) -> list[dict]:
    written = []
    for q in load_questions("mini-es"):
        for step, word in enumerate(q.words):
            row = {"question": q.id, "step": step, "token": word, "g": step + 1}
            written.append(row | ({"guess": page or q.page, "buzz": step > 60} if answered else {}))
    return written


def test_what_can_never_be_scored_is_told_at_upload_with_all_reasons(board: Board, url: str) -> None:
    board.register_dataset("sqa-es", "mini", "mini-es", ["casing"])
    path = f"{url}/api/tasks/sqa-es/models/m"
    first = load_questions("mini-es")[0]
    wrong = [row for row in rows() if row["question"] != first.id]
    wrong[3]["g"], wrong[200]["g"] = 10_000, 0
    reply = requests.put(path, data=as_lines(wrong), headers=ADMIN)
    assert reply.status_code == 400 and reply.json()["more"] == 0
    reasons = reply.json()["reasons"]
    assert len(reasons) == 3 and all(reason.startswith("mini: ") for reason in reasons)
    assert any(f"question {first.id}: has no rows" in reason for reason in reasons)
    reply = requests.put(path, data=as_lines(rows(answered=False)), headers=ADMIN)
    assert reply.status_code == 400 and "without answers there are no expected wins" in reply.json()["reasons"][0]
    broken = b"\n".join([b"{"] * 1500)
    reply = requests.put(path, data=broken, headers=ADMIN).json()
    assert len(reply["reasons"]) == 1000 and reply["more"] == 500 and "1495 more" in reply["detail"]
    assert board.models("sqa-es") == []
    board.register_dataset("sqa-es", "other", str(other(board)))
    reply = requests.put(path, data=as_lines(rows()), headers=ADMIN)
    assert reply.status_code == 201 and list(reply.json()["cannot"]) == ["other"]


def other(board: Board) -> Path:
    path = board.config.folder / "q.jsonl"
    question = {"id": "q1", "language": "es", "source": ["El rey vive."], "reference": ["X."], "page": "Spain"}
    path.write_text(json.dumps(question))
    return path


# -------------------------------------------------------------------------------------------------------- phases


def test_what_leaves_the_board_is_a_matter_of_the_phase(board: Board, url: str) -> None:
    path, questions = board.config.folder / "some.jsonl", load_questions("mini-es")[:6]
    records = [
        {"id": q.id, "language": "es", "source": [" ".join(s) for s in q.sentences], "reference": list(q.reference)}
        | {"page": q.page}
        for q in questions
    ]
    path.write_bytes(as_lines(records))
    for phase in ("open", "closed", "hidden"):
        board.register_dataset("sqa-es", phase, str(path), phase=phase)
    data = f"{url}/api/tasks/sqa-es/datasets"
    registered = requests.put(f"{url}/api/tasks/sqa-es/models/m", data=as_lines(rows("Nowhere")), headers=ADMIN).json()
    assert registered["queued"] == 2  # a file is not evaluated on hidden questions
    worker.work(board, until_empty=True)
    assert [requests.get(f"{data}/{p}/examples").status_code for p in ("open", "closed", "hidden")] == [200, 200, 403]
    assert [requests.get(f"{data}/{p}/answers").status_code for p in ("open", "closed", "hidden")] == [200, 403, 403]
    answers = {q.page for q in questions}
    assert {row["page"] for row in requests.get(f"{data}/open/answers").json()} == answers
    by_example = f"{url}/api/tasks/sqa-es/models/m/examples"
    each = requests.get(by_example, params={"dataset": "open"}).json()
    assert len(each) == 6 and each[0]["guess"] == "Nowhere" and each[0]["page"] in answers and each[0]["value"] == 0.0
    view = f"{url}/tasks/sqa-es/models/m/view"
    page = requests.get(view, params={"dataset": "open", "example": each[0]["id"]})
    assert page.status_code == 200 and page.headers["Content-Security-Policy"].count("sha256-") == 2
    assert each[0]["page"] in page.text
    for phase, status in (("closed", 403), ("hidden", 403), ("nothing", 404)):
        assert requests.get(by_example, params={"dataset": phase}).status_code == status
        assert requests.get(view, params={"dataset": phase, "example": "x"}).status_code == status
    assert requests.get(view, params={"dataset": "open", "example": "x"}).status_code == 404
    said = "".join(
        requests.get(f"{url}/{where}").text
        for where in (
            "api/tasks/sqa-es/evaluations",
            "api/tasks/sqa-es/leaderboard",
            "api/tasks/sqa-es/models/m/log",
            "api/tasks/sqa-es/datasets/closed/examples",
            "api/tasks/sqa-es/datasets",
            "api/tasks/sqa-es/models",
        )
    )
    references = [q.reference_text for q in questions]
    assert not [text for text in references if text[:30] in said]
    assert not [a for a in answers if len(a) > 12 and f'"{a}"' in said]


# ------------------------------------------------------------------------------------------------------- workers


def test_the_board_knows_whether_a_worker_runs(board: Board, url: str) -> None:
    assert requests.get(f"{url}/api/status").json() == {"workers": 0, "to_do": 0, "guarded": True}
    board.register_dataset("toy", "data", board_task.EXAMPLES)
    board.register_model("toy", "m", "submission", model("m"))
    assert requests.get(f"{url}/api/status").json()["to_do"] == 1
    seen = []
    original = worker.run_one

    def watched(*arguments: object) -> object:
        seen.append(requests.get(f"{url}/api/status").json()["workers"])
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "run_one", watched)
        worker.work(board, until_empty=True)
    assert seen == [1] and requests.get(f"{url}/api/status").json()["workers"] == 0


def test_a_worker_beside_the_server_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from sqa.core.paths import ROOT
    from sqa_services.board import queue

    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(str(ROOT / part) for part in ("", "tests", "services", "services/tests"))
    )
    board = Board.open(BoardConfig(tmp_path / "board", tasks=("board_task:make",)))
    board.register_dataset("toy", "data", board_task.EXAMPLES)
    board.register_model("toy", "m", "submission", model("m"))
    with worker.beside(board):
        waiting = Event()
        for _ in range(1200):  # a minute, on a busy machine
            if not queue.open_count(board.engine):
                break
            waiting.wait(0.05)
        assert board.evaluations("toy")[0]["state"] == "done" and queue.workers(board.engine) == 1
    assert queue.workers(board.engine) == 0
    board.engine.dispose()
