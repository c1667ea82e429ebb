"""Claim: many clients translate at once, where the server of 2020 has one global cursor and so serves one at a time.

What the item `many-clients` measures, on our server as a separate process on loopback, both ways with the same
requests: the original's design as clients that use the classic routes one after another (two at a time would read each
other's words), ours as 200 clients at once, each in a session.  Once with clients that answer at once and once with
clients that think 5 ms about a word.  Also what 200 clients take of the server's memory, and the same with expected
wins scored meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from sqa.core.errors import DataError
from sqa.data.datasets import available, load_questions
from sqa_services.bench.speed import Pair


class Server(NamedTuple):
    """A program that listens."""

    netloc: str  # host and port
    process: int  # id


@contextmanager
def server(*arguments: str) -> Iterator[Server]:
    """`sqa ARGUMENTS` on a free port.  One that ends at once: DataError."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "sqa", *arguments, "--port", str(port)]
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            while not _listens(port):
                if process.poll() is not None:
                    raise DataError(f"the server ended: {Path(log.name).read_text(encoding='utf-8')[-500:]}")
                time.sleep(0.1)
            yield Server(f"127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
    except OSError:
        return False
    return True


def memory(process: int, most: bool = False) -> float:
    """MiB that a process has now, or has taken at most (Linux).  It is gone: DataError."""
    name = "VmHWM" if most else "VmRSS"
    try:
        match = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="ascii"))
    except OSError:
        match = None
    if match is None:
        raise DataError(f"/proc/{process}/status: no {name} in it")
    return int(match[1]) / 1024


class Connection:
    """One connection, opened when it is first needed; `async with` closes it."""

    def __init__(self, where: str) -> None:  # host and port, with or without http://
        self._netloc = where.removeprefix("http://")
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of the answer.  None came: DataError."""
        try:
            if self._streams is None:
                host, _, port = self._netloc.rpartition(":")
                self._streams = await asyncio.open_connection(host, int(port))
            reader, writer = self._streams
            head = f"{method} {path} HTTP/1.1\r\nHost: {self._netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            content = await reader.readexactly(int(headers.get("content-length", "0")))
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise DataError(f"{method} {path}: no answer ({error})") from error
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), content


CLIENTS, ALONE = 200, 8  # clients at once; clients one after another, enough to time them
THINK = 0.005  # seconds a client thinks about a word
SENTENCES = 2  # that each client translates
EOS = "</s>"

Corpus = Sequence[Sequence[str]]  # sentences of words


@dataclass(frozen=True, slots=True)
class Client:
    """Waits k words, then copies a word for a word, its own name in place of every fifth."""

    number: int
    sentences: tuple[int, ...]
    think: float = 0.0  # seconds before each word

    @property
    def k(self) -> int:
        return self.number % 7 + 1

    def words(self, source: Sequence[str]) -> list[str]:
        """What it writes of a sentence."""
        return [f"client{self.number}" if index % 5 == 0 else word for index, word in enumerate(source)]

    def delays(self, source: Sequence[str]) -> list[int]:
        """Words it has read at each of them, the end of the sentence counted as one."""
        return [min(self.k + index, len(source) + 1) for index in range(len(source))]


async def translate(http: Connection, base: str, client: Client, corpus: Corpus) -> int:
    """Translate its sentences; the number of requests.  A word of another client's cursor: DataError."""
    requests = 0
    for number in client.sentences:
        source, read = corpus[number], 0
        pairs = zip([*client.words(source), EOS], [*client.delays(source), len(source) + 1], strict=True)
        for word, delay in pairs:
            while read < delay:
                read += 1
                segment = json.loads((await http.ask("GET", f"{base}/src?sent_id={number}"))[1])["segment"]
                if segment != [*source, EOS][read - 1]:
                    raise DataError(f"client {client.number}, sentence {number}: read {segment!r} as word {read}")
            if client.think:
                await asyncio.sleep(client.think)
            status, _ = await http.ask("PUT", f"{base}/hypo?sent_id={number}", word.encode())
            if status != 200:
                raise DataError(f"client {client.number}: PUT /hypo was answered {status}")
            requests += 1
        requests += read
    return requests


async def at_once(netloc: str, clients: Sequence[Client], corpus: Corpus) -> list[dict[str, Any]]:
    """The scores of clients that work at the same time, each in a session."""

    async def one(client: Client) -> dict[str, Any]:
        base = f"/sessions/client-{client.number}"
        async with Connection(netloc) as http:
            sent = await translate(http, base, client, corpus)
            scores = json.loads((await http.ask("GET", f"{base}/result"))[1])
            return scores.get("SoFar", scores) | {"requests": sent}

    tasks = [asyncio.create_task(one(client)) for client in clients]
    try:
        return await asyncio.gather(*tasks)
    finally:  # if one failed, stop the others
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def one_by_one(netloc: str, clients: Sequence[Client], corpus: Corpus) -> int:
    """The number of requests of clients that share one state, each from a reset to its result."""
    requests = 0
    async with Connection(netloc) as http:
        for client in clients:
            await http.ask("POST", "/")
            requests += await translate(http, "", client, corpus)
            await http.ask("GET", "/result")
    return requests


def rate(netloc: str, think: float, corpus: Corpus, alone: bool) -> float:
    """Requests per second."""
    number = ALONE if alone else CLIENTS
    clients = [Client(i, _sentences(i, corpus), think) for i in range(number)]
    start = time.perf_counter()
    if alone:
        done = asyncio.run(one_by_one(netloc, clients, corpus))
    else:
        done = sum(scores["requests"] for scores in asyncio.run(at_once(netloc, clients, corpus)))
    return done / (time.perf_counter() - start)


def _sentences(client: int, corpus: Corpus) -> tuple[int, ...]:
    first = client % (len(corpus) // SENTENCES) * SENTENCES
    return tuple(range(first, first + SENTENCES))


def measured() -> Iterator[tuple[Pair, float, float]]:
    """What, unit, one global cursor, sessions; MiB of the server before, and at most."""
    name = "xqb-es" if available("xqb-es") else "mini-es"
    questions = load_questions(name, limit=20)
    corpus = [sentence for question in questions for sentence in question.sentences]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.write_text("".join(" ".join(sentence) + "\n" for sentence in corpus), encoding="utf-8")
        files = ("--src-file", str(source), "--tgt-file", str(source))
        for what, think, arguments in (
            ("answer at once", 0.0, files),
            (f"think {THINK * 1000:.0f} ms about a word", THINK, files),
            (f"think {THINK * 1000:.0f} ms, expected wins scored", THINK, ("--questions", name)),
        ):
            with server("serve", "iwslt", *arguments) as (netloc, process):
                alone = rate(netloc, think, corpus, alone=True)
                before = memory(process, most=True)
                together = rate(netloc, think, corpus, alone=False)
                yield (what, "requests/s", alone, together), before, memory(process, most=True)
