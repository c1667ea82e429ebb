"""Claim: slow and idle connections do not keep a server from those who ask.

    python -m sqa_services.bench.crowd [iwslt|board|qanta] [SECONDS]

A server, a process of its own that may open 1,024 files, has 500 connections that drip a byte of a request a second and
500 that say nothing, opened anew as they are closed, beside 50 clients that ask for SECONDS (20).  Printed: what the
clients waited (and without the others), what failed, what the server logged, and its memory before and after.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from sqa.core.errors import ConfigError, DataError, returns_exit_code
from sqa_services.bench.servers import Connection, memory, server

SLOW, IDLE, HONEST = 500, 500, 50
FILES = 1024  # that the server may open
PACE = 1.0  # seconds between two requests of an honest client


SERVERS = {  # arguments, and a path to ask for; FOLDER is one to write in
    "iwslt": ("serve iwslt --src-file FOLDER/text --tgt-file FOLDER/text", "/src?sent_id=1"),
    "board": ("board --board FOLDER/board serve", "/api/tasks"),
    "qanta": ("serve qanta", "/api/1.0/quizbowl/status"),
}


async def bad(netloc: str, drips: bool, end: float) -> None:
    """A connection that never asks a whole question, opened again when it is closed."""
    host, _, port = netloc.rpartition(":")
    while time.monotonic() < end:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(host, int(port))
            if drips:
                writer.write(b"GET / HTTP/1.1\r\nX: ")
            while time.monotonic() < end and not reader.at_eof() and not writer.is_closing():
                if drips:
                    writer.write(b"x")
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        if not await reader.read(1000):
                            break
            writer.close()
        await asyncio.sleep(0.1)


async def honest(netloc: str, path: str, end: float, waited: list[float], failed: list[str]) -> None:
    """A client that asks again and again, on a connection that it keeps."""
    async with Connection(netloc) as http:
        while time.monotonic() < end:
            start = time.perf_counter()
            try:
                status, _ = await http.ask("GET", path)
            except DataError as error:
                failed.append(str(error))
            else:
                waited.append(time.perf_counter() - start)
                if status != 200:
                    failed.append(str(status))
            await asyncio.sleep(PACE)


async def crowd(netloc: str, path: str, seconds: float, others: int) -> tuple[list[float], list[str]]:
    """What honest clients waited among so many others, and what failed."""
    end = time.monotonic() + seconds
    crowd = [asyncio.create_task(bad(netloc, number < SLOW, end)) for number in range(others)]
    await asyncio.sleep(min(3.0, seconds / 4) if others else 0.0)
    waited: list[float] = []
    failed: list[str] = []
    await asyncio.gather(*(honest(netloc, path, end, waited, failed) for _ in range(HONEST)))
    for task in crowd:
        task.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    return waited, failed


def measure(name: str, seconds: float) -> str:
    """One line of figures.  Unknown server: ConfigError."""
    if name not in SERVERS:
        raise ConfigError(f"crowd: {', '.join(SERVERS)}, got {name!r}")
    arguments, path = SERVERS[name]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text").write_text("one two three\n" * 100, encoding="utf-8")
        with server(*arguments.replace("FOLDER", folder).split(), files=FILES) as (netloc, process, log):
            before = memory(process)
            alone, _ = asyncio.run(crowd(netloc, path, seconds / 2, 0))
            waited, failed = asyncio.run(crowd(netloc, path, seconds, SLOW + IDLE))
            after, logged = memory(process), log.stat().st_size
    return (
        f"{name}: {len(waited)} answers, {len(failed)} failed, p99 {late(waited):.0f} ms (alone {late(alone):.0f}), "
        f"log {logged} bytes, memory {before:.0f} then {after:.0f} MiB"
    )


def late(waited: list[float]) -> float:
    """ms that 99 of 100 waited at most."""
    return sorted(waited)[int(len(waited) * 0.99)] * 1000 if waited else float("nan")


@returns_exit_code
def main() -> None:
    """Measure the servers that are named, or all."""
    names = [word for word in sys.argv[1:] if not word.isdigit()] or SERVERS
    seconds = float(next((word for word in sys.argv[1:] if word.isdigit()), "20"))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * FILES, hard), hard))  # for this end of the connections
    for name in names:
        print(measure(name, seconds), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
