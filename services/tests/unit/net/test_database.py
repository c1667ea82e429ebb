"""An SQLite file: a transaction that fails leaves nothing, and the next goes on."""

import sqlite3
from pathlib import Path

import pytest

from sqa.core.errors import ConfigError, DataError
from sqa_services.net import database as database_module
from sqa_services.net.database import Database


def test_a_failed_transaction_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "new" / "file", "locking_mode=EXCLUSIVE")
    with database.writing() as db:
        db.execute("CREATE TABLE t (x PRIMARY KEY)")
    for error, statement in ((DataError, "INSERT INTO t VALUES (1), (1)"), (KeyError, "INSERT INTO t VALUES (2)")):
        with pytest.raises(error), database.writing() as db:
            db.execute(statement)
            raise KeyError
    with database.writing() as db:
        db.execute("INSERT INTO t VALUES (3)")
    assert database.rows("SELECT x FROM t WHERE x > ?", 0) == [(3,)]
    with pytest.raises(DataError, match="no such table"):
        database.rows("SELECT * FROM absent")
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.1)
    with pytest.raises(ConfigError, match="is another server running on it"):
        Database(tmp_path / "new" / "file")
    database.close()
    with sqlite3.connect(tmp_path / "new" / "file") as other:
        assert other.execute("SELECT x FROM t").fetchall() == [(3,)]
