"""A client's HTTP connection for hundreds of clients in one process: asks, and reads what is answered."""

from __future__ import annotations

import asyncio
from types import TracebackType

from sqa.core.errors import DataError


class Connection:
    """One connection, opened when it is first needed; `async with` closes it."""

    def __init__(self, netloc: str) -> None:
        self._netloc = netloc
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
