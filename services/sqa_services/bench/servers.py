"""A server of ours as a process, and a client's HTTP connection for hundreds of clients in one process."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from sqa.core.errors import DataError


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
