"""The board's tables, and the engine on them: SQLite in a file by default, PostgreSQL by URL.

    datasets      id, task, name, seed, prefixes (those with examples), examples, created, phase, looks (scores of a
                  person that are shown)
    looks         person (the first account of an invitation), dataset, number (scores shown, of deleted models too)
    models        id, task, name, kind, owner (null: the organiser), created, withdrawn
    evaluations   id, model, dataset, prefix ("" or that of a delta metric), state, attempts, lease, lease_until, error,
                  queued, started, finished
    scores        evaluation (one row at most), result
    details       evaluation (one row at most), each example's statistics of the metric that sorts
    accounts      id, name, token (its sha256), created, invitation, day and sent (submissions on that day since 1970,
                  of all accounts of an invitation, kept with the first)
    invitations   id, code (its sha256), created, until, uses (how many are left)
    events        id, model, time, text: the log of a submission
    views         id, task, name, version, created, datasets and metrics (name -> weight)
    about         key, value: the version of this layout; the secret that rounds scores

Names are unique within a task; a data set never changes once it is registered.  Times are seconds since 1970.
"""

import os
import secrets
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import JSON, Column, Connection, Engine, Float, ForeignKey, Integer, MetaData, String, Table, Text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.schema import SchemaItem

from sqa.core.errors import ConfigError
from sqa.core.packages import lacking

VERSION = 4
LOOKS = 3  # scores of a person on a closed data set, if its registration names no other number
META = MetaData()
NAME, SECRET = String(63), String(64)  # SECRET: a sha256


def _table(name: str, *parts: SchemaItem) -> Table:
    """Define a table with an id."""
    return Table(name, META, Column("id", Integer, primary_key=True), *parts)


def _needed(kind: Any, *names: str) -> list[Column[Any]]:
    """Define columns of one type that are never null."""
    return [Column(name, kind, nullable=False) for name in names]


def _of_evaluation(name: str, value: str) -> Table:
    """Define a table with at most one row per evaluation."""
    return Table(
        name, META, Column("evaluation", ForeignKey("evaluations.id"), primary_key=True), *_needed(JSON, value)
    )


ABOUT = Table("about", META, Column("key", String(16), primary_key=True), *_needed(String(16), "value"))
ACCOUNTS = _table(
    "accounts",
    Column("name", NAME, nullable=False, unique=True),
    Column("token", SECRET, nullable=False, unique=True),
    *_needed(Float, "created"),
    Column("day", Integer, nullable=False, default=0),  # since 1970, of the last submission
    Column("sent", Integer, nullable=False, default=0),  # submissions on that day, of a person's first account
    Column("invitation", ForeignKey("invitations.id"), nullable=False),  # its accounts are one person's
)
INVITATIONS = _table(
    "invitations",
    Column("code", SECRET, nullable=False, unique=True),
    *_needed(Float, "created", "until"),
    *_needed(Integer, "uses"),
)
DATASETS = _table(
    "datasets",
    *_needed(NAME, "task", "name"),
    *_needed(Integer, "seed", "examples", "looks"),
    *_needed(JSON, "prefixes"),
    Column("created", Float),
    Column("phase", String(8), nullable=False),  # one of permissions.PHASES
    sa.UniqueConstraint("task", "name"),
)
MODELS = _table(
    "models",
    *_needed(NAME, "task", "name"),
    *_needed(String(16), "kind"),
    Column("owner", ForeignKey("accounts.id")),
    *(Column(name, Float) for name in ("created", "withdrawn")),
    sa.UniqueConstraint("task", "name"),
)
EVALUATIONS = _table(
    "evaluations",
    Column("model", ForeignKey("models.id"), nullable=False),
    Column("dataset", ForeignKey("datasets.id"), nullable=False),
    *_needed(NAME, "prefix"),
    Column("state", String(8), nullable=False, default="queued"),  # queued, running, done, failed
    Column("attempts", Integer, nullable=False, default=0),
    Column("lease", String(32)),  # a worker's secret while it works at it
    Column("error", Text),
    *(Column(name, Float) for name in ("lease_until", "queued", "started", "finished")),
    sa.UniqueConstraint("model", "dataset", "prefix"),
    sa.Index("evaluations_by_state", "state", "lease_until"),
)
SHOWN = Table(
    "looks",
    META,
    Column("person", ForeignKey("accounts.id"), primary_key=True),
    Column("dataset", ForeignKey("datasets.id"), primary_key=True),
    *_needed(Integer, "number"),
)
SCORES = _of_evaluation("scores", "result")
DETAILS = _of_evaluation("details", "stats")  # [[statistic, ...] per example] of the metric that sorts
EVENTS = _table(
    "events",
    Column("model", ForeignKey("models.id"), nullable=False, index=True),
    *_needed(Float, "time"),
    *_needed(Text, "text"),
)
VIEWS = _table(
    "views",
    *_needed(NAME, "task", "name"),
    *_needed(Integer, "version"),
    *_needed(Float, "created"),
    *_needed(JSON, "datasets", "metrics"),
    sa.UniqueConstraint("task", "name", "version"),
)


def open_engine(url: str) -> Engine:
    """Return the engine of a database URL; an empty database gets its tables.

    Only its owner may read an SQLite file.

    Raises:
        ConfigError: The URL is invalid, or the tables are of another version.
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
        raise ConfigError(f"--db: expected a URL of sqlite or postgresql, got one of {backend}")
    if backend == "sqlite":
        if parsed.database and not Path(parsed.database).exists():
            os.close(os.open(parsed.database, os.O_CREAT | os.O_RDWR, 0o600))  # its journals have the same mode
        sa.event.listen(engine, "connect", _sqlite_settings)
    try:
        _create_tables(engine)
    except ConfigError:
        engine.dispose()
        raise
    return engine


def _create_tables(engine: Engine) -> None:
    """Create the tables in an empty database.  A database of another version: ConfigError."""
    with engine.connect() as connection:
        if _version(connection) == VERSION:
            return
    with engine.begin() as connection:  # one process at a time creates them, and no other sees half of them
        sqlite = engine.dialect.name == "sqlite"
        connection.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else "SELECT pg_advisory_xact_lock(1397834050)")
        version = _version(connection)
        if version not in (0, VERSION):
            problem = f"has version {version} of the board's tables, this SQA reads version {VERSION}"
            raise ConfigError(f"--db: {problem}; use the SQA that made it, or register everything in a new board")
        if version == 0:
            META.create_all(connection)
            about = {"version": str(VERSION), "secret": secrets.token_hex(8)}
            connection.execute(sa.insert(ABOUT), [{"key": key, "value": value} for key, value in about.items()])


def secret(engine: Engine) -> str:
    """Return the secret that keys the rounding of scores."""
    with engine.connect() as connection:
        return str(connection.execute(sa.select(ABOUT.c.value).where(ABOUT.c.key == "secret")).scalar_one())


def _version(connection: Connection) -> int:
    """Return the version of the tables; 0 if there are none."""
    if not sa.inspect(connection).has_table(ABOUT.name):
        return 0
    return int(connection.execute(sa.select(ABOUT.c.value).where(ABOUT.c.key == "version")).scalar_one())


def _sqlite_settings(connection: Any, _: Any) -> None:
    """Let readers not wait for writers, queue writers, and put each commit on the disk."""
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
