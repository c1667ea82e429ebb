"""An SQLite file of a server: a change is in the file before the client is told of it, and survives a kill."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, DataError

BUSY_SECONDS = 2.0  # for another program to let go of the file


class Database:
    """An open file, for any number of threads of one process.  Later errors of SQLite are DataErrors."""

    def __init__(self, path: Path, *pragmas: str) -> None:
        """Open or make the file, which only its owner may read.  Unreadable, in use or not SQLite's: ConfigError."""
        self.path, self._lock = path, threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)
            for pragma in ("journal_mode=WAL", *pragmas):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.execute("SELECT 1 FROM sqlite_master")
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last: a damaged file's own error message
            problem = f"{path} cannot be used ({error}); is another server running on it, or is it another program's?"
            raise ConfigError(problem) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction: in the file when the block ends, undone if the block fails."""
        with self._failing():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended it
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._failing():
            return self._db.execute(query, values).fetchall()

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
