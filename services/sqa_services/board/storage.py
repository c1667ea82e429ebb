"""The board's tables, and the engine on them: SQLite in a file by default, PostgreSQL by URL.

    datasets      id, task, name, seed, prefixes (those with examples), examples, created, phase
    models        id, task, name, kind, owner (null: the organiser), created, withdrawn
    evaluations   id, model, dataset, prefix ("" or that of a delta metric), state, attempts, lease, lease_until, error,
                  queued, started, finished
    scores        evaluation (one row at most), result
    details       evaluation (one row at most), each example's statistics of the metric that sorts
    accounts      id, name, token (its sha256), created, invitation, day and sent (submissions on that day since 1970;
                  the first account of an invitation has those of all of them)
    invitations   id, code (its sha256), created, until, uses (how many are left)
    events        id, model, time, text: the log of a submission
    views         id, task, name, version, created, datasets and metrics (name -> weight): what a headline is made of
    workers       id, seen
    about         key, value: the version of this layout

Names are unique within a task; a data set never changes once it is registered.  Times are seconds since 1970.  Version
2 of the tables did not know which accounts are one person's.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Connection,
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
    delete,
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.schema import CreateColumn, SchemaItem

from sqa.core.errors import ConfigError
from sqa.core.packages import lacking

VERSION = 3
META = MetaData()


def _table(name: str, *parts: SchemaItem) -> Table:
    """A table whose rows have a number."""
    return Table(name, META, Column("id", Integer, primary_key=True), *parts)


ABOUT = Table("about", META, Column("key", String(16), primary_key=True), Column("value", String(16), nullable=False))
ACCOUNTS = _table(
    "accounts",
    Column("name", String(63), nullable=False, unique=True),
    Column("token", String(64), nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("day", Integer, nullable=False, default=0),  # since 1970, of the last submission
    Column("sent", Integer, nullable=False, default=0),  # submissions on that day, of a person's first account
    Column("invitation", ForeignKey("invitations.id")),  # whose accounts are one person's; null: of version 2
)
INVITATIONS = _table(
    "invitations",
    Column("code", String(64), nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("uses", Integer, nullable=False),
)
DATASETS = _table(
    "datasets",
    Column("task", String(63), nullable=False),
    Column("name", String(63), nullable=False),
    Column("seed", Integer, nullable=False),
    Column("prefixes", JSON, nullable=False),
    Column("examples", Integer, nullable=False),
    Column("created", Float),
    Column("phase", String(8), nullable=False, server_default="closed"),  # one of task.PHASES
    UniqueConstraint("task", "name"),
)
MODELS = _table(
    "models",
    Column("task", String(63), nullable=False),
    Column("name", String(63), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("owner", ForeignKey("accounts.id")),
    Column("created", Float),
    Column("withdrawn", Float),
    UniqueConstraint("task", "name"),
)
EVALUATIONS = _table(
    "evaluations",
    Column("model", ForeignKey("models.id"), nullable=False),
    Column("dataset", ForeignKey("datasets.id"), nullable=False),
    Column("prefix", String(63), nullable=False),
    Column("state", String(8), nullable=False, default="queued"),  # queued, running, done, failed
    Column("attempts", Integer, nullable=False, default=0),
    Column("lease", String(32)),  # a worker's secret while it works at it
    Column("lease_until", Float),  # seconds since 1970
    Column("error", Text),
    Column("queued", Float),
    Column("started", Float),
    Column("finished", Float),
    UniqueConstraint("model", "dataset", "prefix"),
    Index("evaluations_by_state", "state", "lease_until"),
)
SCORES = Table(
    "scores",
    META,
    Column("evaluation", ForeignKey("evaluations.id"), primary_key=True),
    Column("result", JSON, nullable=False),
)
DETAILS = Table(
    "details",
    META,
    Column("evaluation", ForeignKey("evaluations.id"), primary_key=True),
    Column("stats", JSON, nullable=False),  # [[statistic, ...] per example] of the metric that sorts
)
EVENTS = _table(
    "events",
    Column("model", ForeignKey("models.id"), nullable=False, index=True),
    Column("time", Float, nullable=False),
    Column("text", Text, nullable=False),
)
VIEWS = _table(
    "views",
    Column("task", String(63), nullable=False),
    Column("name", String(63), nullable=False),
    Column("version", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("datasets", JSON, nullable=False),
    Column("metrics", JSON, nullable=False),
    UniqueConstraint("task", "name", "version"),
)
WORKERS = Table("workers", META, Column("id", String(32), primary_key=True), Column("seen", Float, nullable=False))


def open_engine(url: str) -> Engine:
    """The engine of a database URL; tables are made if they are missing, those of version 2 are brought up to date.

    A bad URL, or a database of a newer version or of the first: ConfigError.
    """
    try:
        parsed = make_url(url)
        engine = create_engine(parsed, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise lacking(error, f"--db {url.partition(':')[0]}") from error
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(f"--db: {error}") from error
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ConfigError(f"--db: expected a URL of sqlite or postgresql, got one of {backend}")
    if backend == "sqlite":
        event.listen(engine, "connect", _sqlite_settings)
    try:
        _up_to_date(engine)
    except ConfigError:
        engine.dispose()
        raise
    return engine


def _up_to_date(engine: Engine) -> None:
    """The tables of this version; what an older version kept stays as it is."""
    with engine.connect() as connection:
        if _version(connection) == VERSION:
            return
    with engine.begin() as connection:  # one process at a time, and none sees half of it
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(1397834050)"))
        version = _version(connection)
        if version > VERSION or version == 1:
            use = "use a newer SQA" if version > VERSION else "open it with SQA 0.2.0 once"
            raise ConfigError(f"--db: has version {version} of the board's tables, this SQA knows {VERSION}; {use}")
        if version == VERSION:
            return
        META.create_all(connection)
        _add_columns(connection)
        connection.execute(delete(ABOUT).where(ABOUT.c.key == "version"))
        connection.execute(insert(ABOUT).values(key="version", value=str(VERSION)))


def _version(connection: Connection) -> int:
    """The version of the tables; 0 where there are none."""
    tables = set(inspect(connection).get_table_names())
    if ABOUT.name in tables:
        version = connection.execute(select(ABOUT.c.value).where(ABOUT.c.key == "version")).scalar_one_or_none()
        if version is not None:
            return int(version)
    return 1 if EVALUATIONS.name in tables else 0


def _add_columns(connection: Connection) -> None:
    """Add the columns that tables of an older version lack."""
    for table in META.sorted_tables:
        existing = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for column in table.c:
            if column.name not in existing:
                declared = CreateColumn(column).compile(dialect=connection.dialect)
                references = "".join(f" REFERENCES {key.column.table.name} (id)" for key in column.foreign_keys)
                connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {declared}{references}"))


def _sqlite_settings(connection: Any, _: Any) -> None:
    """Readers do not wait for a writer, and a writer waits for the one before it; a commit is on the disk."""
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
