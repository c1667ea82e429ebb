"""Benchmark of the evaluation server: many concurrent clients, or one client at a time as on the server of 2020.

The item `many-clients` measures our server in a separate process on loopback, with the same requests in both designs.
In the original design, which has one global cursor, clients use the classic routes one after another.  In our design,
200 clients translate concurrently, each in a session.  Clients answer immediately or after 5 ms per word.  The item
also measures the server's memory, and repeats both measurements while the server scores expected wins.
"""

import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqa.core.errors import DataError
from sqa.data.datasets import available, load_questions
from sqa_services.bench.speed import Pair

Ask = Callable[..., Awaitable[tuple[int, bytes]]]  # function of method, path and body; returns status and body


@contextmanager
def server(*arguments: str) -> Iterator[tuple[str, int]]:
    """Run `sqa ARGUMENTS` on a free port; yield "host:port" and the process id.  Raises DataError if it exits early."""
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
            yield f"127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def memory(process: int) -> float:
    """Return the peak memory of a process in MiB (Linux)."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="ascii"))
    return int(match[1]) / 1024 if match else 0.0


@asynccontextmanager
async def connection(where: str) -> AsyncIterator[Ask]:
    """Yield a function that sends a request over a connection to "host:port" and returns the response.

    The function raises DataError if the connection fails.
    """
    netloc = where.removeprefix("http://")
    host, _, port = netloc.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def ask(method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: {netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            writer.write(head.encode() + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = re.search(r"content-length: *(\d+)", head)
            return int(head.split()[1]), await reader.readexactly(int(length[1]) if length else 0)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise DataError(f"{method} {path}: no answer ({error})") from error

    try:
        yield ask
    finally:
        writer.close()


CLIENTS, ALONE = 200, 8  # number of concurrent clients; number of consecutive clients
THINK = 0.005  # seconds that a client waits before each word
SENTENCES = 2  # sentences that each client translates
EOS = "</s>"

Corpus = Sequence[Sequence[str]]  # sentences as lists of words


@dataclass(frozen=True, slots=True)
class Client:
    """A wait-k client that copies the source but replaces every fifth word with its own name."""

    number: int
    sentences: tuple[int, ...]
    think: float = 0.0  # seconds before each word

    @property
    def k(self) -> int:
        return self.number % 7 + 1

    def words(self, source: Sequence[str]) -> list[str]:
        """Return the translation of a sentence."""
        return [f"client{self.number}" if index % 5 == 0 else word for index, word in enumerate(source)]

    def delays(self, source: Sequence[str]) -> list[int]:
        """Return the number of source words read before each target word; the end of the sentence counts as a word."""
        return [min(self.k + index, len(source) + 1) for index in range(len(source))]


async def translate(ask: Ask, base: str, client: Client, corpus: Corpus) -> int:
    """Translate a client's sentences, and return the number of requests.  Raises DataError for unexpected responses."""
    requests = 0
    for number in client.sentences:
        source, read = corpus[number], 0
        pairs = zip([*client.words(source), EOS], [*client.delays(source), len(source) + 1], strict=True)
        for word, delay in pairs:
            while read < delay:
                read += 1
                segment = json.loads((await ask("GET", f"{base}/src?sent_id={number}"))[1])["segment"]
                if segment != [*source, EOS][read - 1]:
                    raise DataError(f"client {client.number}, sentence {number}: read {segment!r} as word {read}")
            if client.think:
                await asyncio.sleep(client.think)
            status, _ = await ask("PUT", f"{base}/hypo?sent_id={number}", word.encode())
            if status != 200:
                raise DataError(f"client {client.number}: PUT /hypo was answered {status}")
            requests += 1
        requests += read
    return requests


async def at_once(netloc: str, clients: Sequence[Client], corpus: Corpus) -> list[dict[str, Any]]:
    """Run clients concurrently, each in a session, and return their scores."""

    async def one(client: Client) -> dict[str, Any]:
        base = f"/sessions/client-{client.number}"
        async with connection(netloc) as ask:
            sent = await translate(ask, base, client, corpus)
            scores = json.loads((await ask("GET", f"{base}/result"))[1])
            return scores.get("SoFar", scores) | {"requests": sent}

    return await asyncio.gather(*map(one, clients))


async def one_by_one(netloc: str, clients: Sequence[Client], corpus: Corpus) -> int:
    """Run clients one after another on the server's shared state, and return the number of requests."""
    requests = 0
    async with connection(netloc) as ask:
        for client in clients:
            await ask("POST", "/")
            requests += await translate(ask, "", client, corpus)
            await ask("GET", "/result")
    return requests


def rate(netloc: str, think: float, corpus: Corpus, alone: bool) -> float:
    """Return the requests per second of consecutive (`alone`) or concurrent clients."""
    first = [i % (len(corpus) // SENTENCES) * SENTENCES for i in range(ALONE if alone else CLIENTS)]
    clients = [Client(i, tuple(range(number, number + SENTENCES)), think) for i, number in enumerate(first)]
    start = time.perf_counter()
    if alone:
        done = asyncio.run(one_by_one(netloc, clients, corpus))
    else:
        done = sum(scores["requests"] for scores in asyncio.run(at_once(netloc, clients, corpus)))
    return done / (time.perf_counter() - start)


def measured() -> Iterator[tuple[Pair, float, float]]:
    """Yield (measurement, unit, rate with one cursor, rate with sessions), and the peak memory after each, in MiB."""
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
                before = memory(process)
                together = rate(netloc, think, corpus, alone=False)
                yield (what, "requests/s", alone, together), before, memory(process)
