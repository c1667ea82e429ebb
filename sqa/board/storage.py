"""The board's tables, and the engine on them: SQLite in a file by default, PostgreSQL by URL.

    datasets      id, task, name, seed, prefixes (those with examples), examples
    models        id, task, name, kind
    evaluations   id, model, dataset, prefix ("" or that of a delta metric), state, attempts, lease, lease_until, error
    scores        evaluation (one row at most, for ever), result

Names are unique within a task; a data set or model never changes once it is registered.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from sqa.core.errors import ConfigError

META = MetaData()

DATASETS = Table(
    "datasets",
    META,
    Column("id", Integer, primary_key=True),
    Column("task", String(63), nullable=False),
    Column("name", String(63), nullable=False),
    Column("seed", Integer, nullable=False),
    Column("prefixes", JSON, nullable=False),
    Column("examples", Integer, nullable=False),
    UniqueConstraint("task", "name"),
)
MODELS = Table(
    "models",
    META,
    Column("id", Integer, primary_key=True),
    Column("task", String(63), nullable=False),
    Column("name", String(63), nullable=False),
    Column("kind", String(16), nullable=False),
    UniqueConstraint("task", "name"),
)
EVALUATIONS = Table(
    "evaluations",
    META,
    Column("id", Integer, primary_key=True),
    Column("model", ForeignKey("models.id"), nullable=False),
    Column("dataset", ForeignKey("datasets.id"), nullable=False),
    Column("prefix", String(63), nullable=False),
    Column("state", String(8), nullable=False, default="queued"),  # queued, running, done, failed
    Column("attempts", Integer, nullable=False, default=0),
    Column("lease", String(32)),  # a worker's secret while it works at it
    Column("lease_until", Float),  # seconds since 1970
    Column("error", Text),
    UniqueConstraint("model", "dataset", "prefix"),
    Index("evaluations_by_state", "state", "lease_until"),
)
SCORES = Table(
    "scores",
    META,
    Column("evaluation", ForeignKey("evaluations.id"), primary_key=True),
    Column("result", JSON, nullable=False),
)


def open_engine(url: str) -> Engine:
    """The engine of a database URL; its tables are made if they are missing.  A bad URL: ConfigError."""
    try:
        parsed = make_url(url)
        engine = create_engine(parsed, pool_pre_ping=True)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise ConfigError(f"--db: {error}") from error
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ConfigError(f"--db: expected a URL of sqlite or postgresql, got one of {backend}")
    if backend == "sqlite":
        event.listen(engine, "connect", _sqlite_settings)
    META.create_all(engine)
    return engine


def _sqlite_settings(connection: Any, _: Any) -> None:
    """Readers do not wait for a writer, and a writer waits for the one before it; a commit is on the disk."""
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
