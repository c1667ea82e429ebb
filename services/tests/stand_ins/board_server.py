"""A board that is served over HTTP on a free loopback port, and its users."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from stand_ins.http_server import serving_app

from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.server import make_app
from sqa_services.net.guard import Address

SUBMIT = "submit-submit-submit"  # the submitters' token


@contextmanager
def serving(board: Board, address: Address | None = None) -> Iterator[str]:
    """Yield the URL of a server that runs in a thread until the block ends; it accepts 5 submissions a day."""
    try:
        with serving_app(make_app(board, address or Address(), per_day=5)) as url:
            yield url
    finally:
        board.database.close()


class Person:
    """A user with or without a token."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url, self.token = url, token

    def ask(self, method: str, path: str, **more: object) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}".encode()} if self.token else {}
        return requests.request(method, self.url + path, headers=headers, timeout=60, **more)

    def get(self, path: str, **params: object) -> requests.Response:
        return self.ask("GET", path, params=params)

    def submit(self, name: str, data: bytes, task: str = "toy") -> requests.Response:
        return self.ask("PUT", f"/api/tasks/{task}/models/{name}", data=data)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    """Yield a board with the toy task, in the subfolder `board` of the test's folder."""
    opened = Board.open(BoardConfig(tmp_path / "board", tasks=("board_task:make",)))
    yield opened
    opened.database.close()


@pytest.fixture
def owner(board: Board) -> Iterator[Person]:
    """Yield an owner of the board's server, which accepts 5 submissions a day."""
    address = Address(token="sécret-sécret-sécret", max_body=3_000_000, submit_token=SUBMIT)
    with serving(board, address) as url:
        yield Person(url, "sécret-sécret-sécret")


@pytest.fixture
def submitter(owner: Person) -> Person:
    """Return a person with the submitters' token."""
    return Person(owner.url, SUBMIT)
