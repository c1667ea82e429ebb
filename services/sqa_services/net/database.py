"""SQLite file of a server.  Every change is on disk before the client gets a response."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, DataError

BUSY_SECONDS = 2.0  # seconds to wait for a lock of another program


class Database:
    """An open SQLite file, for any number of threads of one process.

    Raises DataError for SQLite errors after opening.
    """

    def __init__(self, path: Path, *pragmas: str) -> None:
        """Open or create the file, which only its owner may read.

        Raises ConfigError if the file is unreadable, in use, or not an SQLite file.
        """
        self.path, self._lock = path, threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)
            for pragma in ("journal_mode=WAL", *pragmas):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.execute("SELECT 1 FROM sqlite_master")
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the message may be invalid UTF-8
            problem = f"{path} cannot be used ({error}); does another server or program use it?"
            raise ConfigError(problem) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction: committed when the block ends, rolled back if the block fails."""
        with self._failing():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended the transaction
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._failing():
            return self._db.execute(query, values).fetchall()

    def dicts(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Return the rows of a query by the names of their columns."""
        with self._failing():
            cursor = self._db.execute(query, values)
            names = [column for column, *_ in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except (sqlite3.Error, OverflowError) as error:
                raise DataError(f"{self.path}: {error}") from error
