"""The board over HTTP: what it answers, and what a hostile request gets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import board_task
import pytest
import requests
from stand_ins.board_server import serving

from sqa_services.board import worker
from sqa_services.board.board import Board
from sqa_services.board.server import ServeConfig
from sqa_services.net.address import Address

MODEL = json.dumps({"name": "m", "answers": {"eins": "a", "zwei": "b", "DREI": "c"}})


@pytest.fixture
def url(board: Board) -> Iterator[str]:
    with serving(board, ServeConfig(address=Address(max_body=200_000))) as url:
        yield url


def test_from_registration_to_leaderboard(board: Board, url: str) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    reply = requests.put(f"{url}/api/tasks/toy/models/m", data=MODEL)
    assert reply.status_code == 201 and reply.json()["queued"] == 2
    worker.work(board, until_empty=True)
    ranked = requests.get(
        f"{url}/api/tasks/toy/leaderboard", params={"weights": "accuracy=1", "dataset": "data"}
    ).json()
    assert ranked["rows"][0]["metrics"]["accuracy"] == 100.0 and "needs two or more" in ranked["refusal"]
    evaluations = requests.get(f"{url}/api/tasks/toy/evaluations", params={"state": "done"}).json()
    assert len(evaluations) == 2
    assert [model["name"] for model in requests.get(f"{url}/api/tasks/toy/models").json()] == ["m"]
    assert "toy" in [task["code"] for task in requests.get(f"{url}/api/tasks").json()]


def test_questions_go_out_without_answers(board: Board, url: str) -> None:
    board.register_dataset("sqa-es", "mine", "mini-es", ["gender"])
    examples = requests.get(f"{url}/api/tasks/sqa-es/datasets/fairness-mine/examples").json()
    assert examples[0]["id"].endswith("_gender") and set(examples[0]) == {"id", "language", "source"}
    assert [d["name"] for d in requests.get(f"{url}/api/tasks/sqa-es/datasets").json()] == ["mine"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/tasks/nothing/models", None, 404),
        ("GET", "/api/tasks/toy/leaderboard?weights=accuracy=0", None, 400),
        ("GET", "/api/tasks/toy/leaderboard?dataset=x", None, 404),
        ("PUT", "/api/tasks/toy/models/m", b"{", 400),
        ("PUT", "/api/tasks/sqa-es/models/m", b"\xff", 400),
        ("PUT", "/api/tasks/sqa-es/models/" + "m" * 64, b"{}", 422),
        ("GET", "/api/tasks/toy/leaderboard?version=99999999999999999999", None, 422),
        ("POST", "/api/accounts", b"[" * 50_000, 422),
        ("POST", "/api/accounts", b'{"name": "\\ud800", "invitation": "x"}', 422),
        ("POST", "/api/tasks/toy/models/m", b"", 405),
        ("GET", "/docs", None, 404),
    ],
)
def test_what_is_wrong_is_the_clients_mistake(
    url: str, method: str, path: str, body: bytes | None, status: int
) -> None:
    kind = {"Content-Type": "application/json"}
    reply = requests.request(method, url + path, data=body, headers=kind)
    assert reply.status_code in (status, 400 if status == 422 else status) and "detail" in reply.json()


def test_the_page(url: str) -> None:
    page = requests.get(url)
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
        assert name in page.text and requests.get(f"{url}/{name}").headers["Content-Type"].startswith(kind)


# ------------------------------------------------------------------------------------------------------- the guard


def test_whatever_writes_needs_the_token(board: Board) -> None:
    with serving(board, ServeConfig(address=Address(token="sécret"))) as url:
        for given in (None, "Bearer wrong", "sécret", "Bearer"):
            headers = {} if given is None else {"Authorization": given.encode()}
            reply = requests.put(f"{url}/api/tasks/toy/models/m", data=MODEL, headers=headers)
            assert reply.status_code == 401 and reply.headers["WWW-Authenticate"] == "Bearer"
        assert requests.get(f"{url}/api/tasks").status_code == 200 and board.models("toy") == []
        right = {"Authorization": "Bearer sécret".encode()}
        assert requests.put(f"{url}/api/tasks/toy/models/m", data=MODEL, headers=right).status_code == 201
