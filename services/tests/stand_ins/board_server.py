"""A board that is served over HTTP on a free loopback port, and its users."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import board_database
import pytest
import requests
from stand_ins.http_server import serving_app

from sqa_services.board import accounts
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.server import ServeConfig, make_app
from sqa_services.net.address import Address


@contextmanager
def serving(board: Board, config: ServeConfig | None = None) -> Iterator[str]:
    """Yield the URL of a server that runs in a thread until the block ends."""
    try:
        with serving_app(make_app(board, config or ServeConfig())) as url:
            yield url
    finally:
        board.engine.dispose()


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
    opened = Board.open(BoardConfig(tmp_path / "board", tasks=("board_task:make",), db=board_database.fresh()))
    yield opened
    opened.engine.dispose()


@pytest.fixture
def organiser(board: Board) -> Iterator[Person]:
    """Yield the organiser of the board's server, which accepts 5 submissions a day."""
    config = ServeConfig(address=Address(token="sécret-sécret-sécret", max_body=3_000_000), per_day=5)
    with serving(board, config) as url:
        yield Person(url, "sécret-sécret-sécret")


def invitation(board: Board, uses: int = 1) -> str:
    return accounts.invite(board.engine, uses)["invitation"]


def signed_up(board: Board, url: str, name: str, code: str = "") -> Person:
    """Create an account and return its user."""
    asked = {"name": name, "invitation": code or invitation(board)}
    return Person(url, Person(url).ask("POST", "/api/accounts", json=asked).json()["token"])
