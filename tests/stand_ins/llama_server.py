"""The server of llama.cpp: the real program, a recording proxy, and a replay of recorded exchanges.

    with serving(program, model) as base_url, Recorder(base_url) as server: ...    # server.exchanges
    with Replay(exchanges) as server: ...

A replay responds only to requests that equal a recorded request in all keys.
"""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from stand_ins.chat_server import Answer, ChatServer

PATIENCE = 300.0  # seconds until the model is loaded
# one request at a time, so that no response depends on a concurrent request
OPTIONS = "-c 512 -np 1 -t 1 -a gemma".split()

Exchange = dict[str, Any]  # path, request, status, reply


@contextmanager
def serving(program: str, model: str) -> Iterator[str]:
    """Run the program on a free loopback port and yield its URL; its libraries are in the program's folder."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "-m", model, "--host", "127.0.0.1", "--port", str(port), *OPTIONS]
    libraries = os.pathsep.join(filter(None, (str(Path(program).parent), os.environ.get("LD_LIBRARY_PATH", ""))))
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "LD_LIBRARY_PATH": libraries}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE
        while not _healthy(url):
            assert process.poll() is None, f"{command} ended"
            assert time.monotonic() < end, f"{command} does not answer"
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait()


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


class Recorder(ChatServer):
    """A proxy that forwards every request to a server and records the exchange."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.exchanges: list[Exchange] = []

    def answer(self, path: str, key: str | None, request: dict[str, Any]) -> Answer:
        sent = urllib.request.Request(
            self.url + path, json.dumps(request).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(sent) as answer:
                status, body = answer.status, answer.read()
        except HTTPError as error:
            status, body = error.code, error.read()
        reply = json.loads(body)
        reply.pop("timings", None)  # they differ between machines
        self.exchanges.append({"path": path, "request": request, "status": status, "reply": reply})
        return Answer(body, status)


class Replay(ChatServer):
    """A server that replays recorded responses."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        super().__init__()
        self.known = {_key(each["path"], each["request"]): each for each in exchanges}
        self.asked: list[str] = []

    def answer(self, path: str, key: str | None, request: dict[str, Any]) -> Answer:
        self.asked.append(_key(path, request))
        known = self.known.get(self.asked[-1])
        if known is None:
            return Answer(b"not recorded", 418)
        return Answer(json.dumps(known["reply"], ensure_ascii=False, separators=(",", ":")).encode(), known["status"])


def _key(path: str, request: dict[str, Any]) -> str:
    return json.dumps([path, request], sort_keys=True)
