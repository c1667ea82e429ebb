"""A board over HTTP on a free port of loopback, and those who ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from stand_ins.http_server import serving_app

from sqa_services.board import accounts
from sqa_services.board.board import Board
from sqa_services.board.server import ServeConfig, make_app


@contextmanager
def serving(board: Board, config: ServeConfig | None = None) -> Iterator[str]:
    """The URL of a server that runs in a thread until the block ends."""
    try:
        with serving_app(make_app(board, config or ServeConfig())) as url:
            yield url
    finally:
        board.engine.dispose()


class Person:
    """Somebody with a token, or without one."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url, self.token = url, token

    def ask(self, method: str, path: str, **more: object) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}".encode()} if self.token else {}
        return requests.request(method, self.url + path, headers=headers, timeout=60, **more)

    def get(self, path: str, **params: object) -> requests.Response:
        return self.ask("GET", path, params=params)

    def submit(self, name: str, data: bytes, task: str = "toy") -> requests.Response:
        return self.ask("PUT", f"/api/tasks/{task}/models/{name}", data=data)


def invitation(board: Board, uses: int = 1) -> str:
    return accounts.invite(board.engine, uses)["invitation"]


def signed_up(board: Board, url: str, name: str, code: str = "") -> Person:
    """A new account's holder."""
    asked = {"name": name, "invitation": code or invitation(board)}
    return Person(url, Person(url).ask("POST", "/api/accounts", json=asked).json()["token"])
