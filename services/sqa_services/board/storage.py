"""The board's tables and their engine: SQLite in a file by default, PostgreSQL by URL.

    datasets      id, task, name, seed, prefixes (with examples), examples, created
    models        id, task, name, kind, created
    evaluations   id, model, dataset, prefix ("" or the prefix of a delta metric), state, attempts, lease, lease_until,
                  error, queued, started, finished
    scores        evaluation (one row at most), result
    details       evaluation (one row at most), statistics of each example for the sorting metric
    days          day (since 1970), sent (submissions with the submitters' token)
    events        id, model, time, text: the log of a submission
    about         key, value: version of the tables

Names are unique within a task.  A registered data set never changes.  Times are seconds since 1970.
"""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import JSON, Column, Connection, Engine, Float, ForeignKey, Integer, MetaData, String, Table, Text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.schema import SchemaItem

from sqa.core.errors import ConfigError
from sqa.core.packages import lacking

VERSION = 5
META = MetaData()
NAME = String(63)


def _table(name: str, *parts: SchemaItem) -> Table:
    """Define a table with an id column."""
    return Table(name, META, Column("id", Integer, primary_key=True), *parts)


def _needed(kind: Any, *names: str) -> list[Column[Any]]:
    """Define non-null columns of one type."""
    return [Column(name, kind, nullable=False) for name in names]


def _of_evaluation(name: str, value: str) -> Table:
    """Define a table with at most one row per evaluation."""
    return Table(
        name, META, Column("evaluation", ForeignKey("evaluations.id"), primary_key=True), *_needed(JSON, value)
    )


ABOUT = Table("about", META, Column("key", String(16), primary_key=True), *_needed(String(16), "value"))
DAYS = Table("days", META, Column("day", Integer, primary_key=True), *_needed(Integer, "sent"))
DATASETS = _table(
    "datasets",
    *_needed(NAME, "task", "name"),
    *_needed(Integer, "seed", "examples"),
    *_needed(JSON, "prefixes"),
    Column("created", Float),
    sa.UniqueConstraint("task", "name"),
)
MODELS = _table(
    "models",
    *_needed(NAME, "task", "name"),
    *_needed(String(16), "kind"),
    Column("created", Float),
    sa.UniqueConstraint("task", "name"),
)
EVALUATIONS = _table(
    "evaluations",
    Column("model", ForeignKey("models.id"), nullable=False),
    Column("dataset", ForeignKey("datasets.id"), nullable=False),
    *_needed(NAME, "prefix"),
    Column("state", String(8), nullable=False, default="queued"),  # queued, running, done, failed
    Column("attempts", Integer, nullable=False, default=0),
    Column("lease", String(32)),  # secret of the worker that holds the lease
    Column("error", Text),
    *(Column(name, Float) for name in ("lease_until", "queued", "started", "finished")),
    sa.UniqueConstraint("model", "dataset", "prefix"),
    sa.Index("evaluations_by_state", "state", "lease_until"),
)
SCORES = _of_evaluation("scores", "result")
DETAILS = _of_evaluation("details", "stats")  # [[statistic, ...] per example] for the sorting metric
EVENTS = _table(
    "events",
    Column("model", ForeignKey("models.id"), nullable=False, index=True),
    *_needed(Float, "time"),
    *_needed(Text, "text"),
)


def open_engine(url: str) -> Engine:
    """Return the engine of a database URL; create the tables in an empty database.

    Only its owner may read an SQLite file.

    Raises:
        ConfigError: The URL is invalid, or the tables have another version.
    """
    try:
        parsed = make_url(url)
        engine = sa.create_engine(parsed, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise lacking(error, f"--db {url.partition(':')[0]}") from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(f"--db: {error}") from error
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ConfigError(f"--db: expected a URL of sqlite or postgresql, got {backend}")
    if backend == "sqlite":
        if parsed.database and not Path(parsed.database).exists():
            os.close(os.open(parsed.database, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite gives its journals the same mode
        sa.event.listen(engine, "connect", _sqlite_settings)
    try:
        _create_tables(engine)
    except ConfigError:
        engine.dispose()
        raise
    return engine


def _create_tables(engine: Engine) -> None:
    """Create the tables in an empty database.  Raises ConfigError if the database has another version."""
    with engine.connect() as connection:
        if _version(connection) == VERSION:
            return
    with engine.begin() as connection:  # no other process sees a part of the tables
        sqlite = engine.dialect.name == "sqlite"
        connection.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else "SELECT pg_advisory_xact_lock(1397834050)")
        version = _version(connection)
        if version not in (0, VERSION):
            problem = f"has version {version} of the board's tables, but this SQA reads version {VERSION}"
            raise ConfigError(
                f"--db: {problem}; use the SQA version that created it, or register everything in a new board"
            )
        if version == 0:
            META.create_all(connection)
            connection.execute(sa.insert(ABOUT).values(key="version", value=str(VERSION)))


def _version(connection: Connection) -> int:
    """Return the version of the tables, or 0 if there are none."""
    if not sa.inspect(connection).has_table(ABOUT.name):
        return 0
    return int(connection.execute(sa.select(ABOUT.c.value).where(ABOUT.c.key == "version")).scalar_one())


def _sqlite_settings(connection: Any, _: Any) -> None:
    """Configure SQLite: readers do not wait for writers, writers wait in a queue, and each commit reaches the disk."""
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
