"""Storage of a board: an SQLite database and a folder of files, which only their owner may read.

    datasets      names, seeds and prefixes of perturbed copies; a registered data set never changes
    models        names and kinds
    evaluations   one row for each model, data set and prefix ("" or that of a delta metric): the state, the lease of a
                  worker, and the result
    days          submissions with the submitters' token per day (since 1970)

Names are unique within a task.  Times are seconds since 1970.

    datasets/<task>/[<prefix>-]<name>.jsonl               examples, as in Dynabench
    models/<task>/<name>.<kind>                           a submission, or a run's config
    predictions/<task>/<model>/[<prefix>-]<name>.jsonl    responses of a model
    answers/<task>/<name>/<created>-<model>.json          digests of its answers, also of a deleted model
"""

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqa.core import ConfigError, DataError
from sqa_services.board.task import NotFound

VERSION = 7
SCHEMA = """
CREATE TABLE datasets (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, name TEXT NOT NULL, seed INTEGER NOT NULL, examples INTEGER NOT NULL,
    prefixes TEXT NOT NULL, created REAL NOT NULL, UNIQUE (task, name));
CREATE TABLE models (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, created REAL NOT NULL,
    UNIQUE (task, name));
CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY, model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
    dataset INTEGER NOT NULL REFERENCES datasets, prefix TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'queued',
    attempts INTEGER NOT NULL DEFAULT 0, lease TEXT, lease_until REAL, error TEXT, queued REAL, started REAL,
    finished REAL, result TEXT, UNIQUE (model, dataset, prefix));
CREATE INDEX evaluations_by_state ON evaluations (state, lease_until);
CREATE TABLE days (day INTEGER PRIMARY KEY, sent INTEGER NOT NULL)
"""
PRAGMAS = ("busy_timeout=30000", "journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL")


class Database:
    """An open SQLite file, for any number of threads of one process.  Every change is on disk when its call returns.

    Raises DataError for SQLite errors after opening.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file, which only its owner may read.

        Raises ConfigError if the file is unreadable, in use, or not an SQLite file.
        """
        self.path, self._lock = path, threading.Lock()
        try:
            path.touch(0o600)  # SQLite gives its mode to the files beside it
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.row_factory = _named
            for pragma in PRAGMAS:
                self._db.execute(f"PRAGMA {pragma}")
            self._db.execute("SELECT 1 FROM sqlite_master")
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the message may be invalid UTF-8
            problem = f"{path} cannot be used ({error}); does another server or program use it?"
            raise ConfigError(problem) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction: committed when the block ends, rolled back if the block or the commit fails."""
        with self._failing(), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Return the rows of a query by the names of their columns."""
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


def _named(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row by the names of its columns."""
    return dict(zip((column for column, *_ in cursor.description), row, strict=True))


def open_database(path: Path) -> Database:
    """Open a board's database, and create its tables in a new file.  Raises ConfigError for another version."""
    database = Database(path)
    with database.writing() as db:  # no other process sees a part of the tables
        [found] = db.execute(
            "SELECT user_version, (SELECT COUNT(*) FROM sqlite_master) AS tables FROM pragma_user_version"
        )
        if not found["tables"]:
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
    if found["tables"] and found["user_version"] != VERSION:
        database.close()
        problem = f"has version {found['user_version']} of the board's tables, but this SQA reads version {VERSION}"
        raise ConfigError(f"--board: {path} {problem}; use the SQA version that created it, or start a new board")
    return database


def stored(files: Path, path: str) -> bytes:
    """Return the bytes of a board's file.  Raises DataError if it is missing."""
    try:
        return (files / path).read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing from the board's files") from error


def stored_lines(files: Path, path: str) -> list[Mapping[str, Any]]:
    """Return the objects of a board's file of JSON lines."""
    return [json.loads(line) for line in stored(files, path).decode().split("\n") if line]


def as_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Format objects as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def data_path(task: str, name: str, prefix: str = "") -> str:
    """Return the path of a data set's examples."""
    return f"datasets/{task}/{prefixed(prefix, name)}.jsonl"


def model_path(task: str, name: str, kind: str) -> str:
    """Return the path of a model's file."""
    return f"models/{task}/{name}.{kind}"


def predictions_path(task: str, model: str, name: str, prefix: str = "") -> str:
    """Return the path of a model's responses to a data set."""
    return f"predictions/{task}/{model}/{prefixed(prefix, name)}.jsonl"


def prefixed(prefix: str, name: str) -> str:
    """Return PREFIX-NAME, such as "fairness-mnli-dev", or NAME if the prefix is empty."""
    return f"{prefix}-{name}" if prefix else name


def split_prefix(name: str, names: Collection[str]) -> tuple[str, str | None]:
    """Split NAME or PREFIX-NAME into data set and prefix (or None).  Raises NotFound if the data set is unknown."""
    prefix, _, base = name.partition("-")
    if name in names:
        return name, None
    if base in names:
        return base, prefix
    raise NotFound(f"Dataset {name} not found.")
