"""Many clients of the evaluation server at once, each in a session."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqa.core.errors import DataError

Ask = Callable[..., Awaitable[tuple[int, bytes]]]  # function of method, path and body; returns status and body


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
