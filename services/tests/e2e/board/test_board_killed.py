"""`kill -9` of the board's workers and server: every queued evaluation finishes exactly once.

`SQA_KILLS=1` kills the server 50 times.
"""

import itertools
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import requests
from board_task import add_data, add_models
from stand_ins.processes import ENVIRONMENT, free_port, kill, listens, wait_until

from sqa_services.board.board import Board


def worker(folder: Path, lease: float = 1.0) -> subprocess.Popen[bytes]:
    return board_command(folder, "work", "--until-empty", "--lease", str(lease))


def board_command(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    log = folder / "log"
    log.mkdir(exist_ok=True)
    code = "from sqa_services.cli.board import board_app; board_app()"
    options = ["--task", "board_task:make", "--board", "board"]
    command = [sys.executable, "-c", code, *options, *words]
    with (folder / "stderr").open("ab") as stderr:
        return subprocess.Popen(
            command, cwd=folder, env=ENVIRONMENT | {"TOY_LOG": str(log)}, stderr=stderr, start_new_session=True
        )


def starts(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted((folder / "log").iterdir())]


def test_next_worker_finishes_a_killed_evaluation(board: Board, tmp_path: Path) -> None:
    add_data(board)
    add_models(board, m={"seconds": 2.2})
    process = worker(tmp_path)
    wait_until(lambda: starts(tmp_path))
    kill(process)
    [row] = board.evaluations("toy")
    assert row["state"] == "running" and row["result"] is None
    assert worker(tmp_path).wait(60) == 0  # the evaluation takes two leases, so the worker renews its lease
    [row] = board.evaluations("toy")
    assert row["state"] == "done" and row["attempts"] == 2 and len(starts(tmp_path)) == 2


CLIENTS = 20


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.needs("SQA_KILLS"))])
def test_killed_server_keeps_accepted_submissions(board: Board, tmp_path: Path, kills: int) -> None:
    """The server is killed while clients submit. Each accepted submission is stored and evaluated exactly once."""
    add_data(board, "data", "casing")
    port = free_port()
    chance, ended, taken = random.Random(kills), threading.Event(), set()
    server = serving(tmp_path, port)
    clients = [
        threading.Thread(target=submit, args=(port, number, ended, taken), daemon=True) for number in range(CLIENTS)
    ]
    try:
        for client in clients:
            client.start()
        for _ in range(kills):
            before = len(taken)
            wait_until(lambda before=before: len(taken) > before)  # the server is running and busy
            time.sleep(chance.uniform(0.0, 0.3))
            kill(server)
            server = serving(tmp_path, port)
        wait_until(lambda: listens(port))
    finally:
        ended.set()
        for client in clients:
            client.join(60)
        kill(server)
    assert worker(tmp_path).wait(600) == 0
    rows = board.evaluations("toy")
    assert {row["model"] for row in rows} == taken and len(rows) == 2 * len(taken)
    assert {row["state"] for row in rows} == {"done"}
    for prefix in ("", "robustness"):  # all submissions are equal, so their scores must be equal
        assert len({json.dumps(row["result"], sort_keys=True) for row in rows if row["prefix"] == prefix}) == 1
    assert {row["result"]["perf"] for row in rows if not row["prefix"]} == {66.67}


def serving(folder: Path, port: int) -> subprocess.Popen[bytes]:
    return board_command(folder, "serve", "--port", str(port))


def submit(port: int, number: int, ended: threading.Event, taken: set[str]) -> None:
    """Submit files one by one, each repeatedly until it is accepted, and add its name to `taken`."""
    body = json.dumps({"answers": {"eins": "a", "": "b"}, "name": "m"}).encode()
    for attempt in itertools.count():
        name, answer = f"m{number}-{attempt}", None
        while answer is None:
            try:
                answer = requests.put(f"http://127.0.0.1:{port}/api/tasks/toy/models/{name}", data=body, timeout=30)
            except requests.RequestException:
                time.sleep(0.05)
        assert answer.status_code in (201, 409), answer.text  # 409: accepted by the killed server
        taken.add(name)
        if ended.wait(0.5):
            return
