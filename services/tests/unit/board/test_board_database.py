"""Transactions of an SQLite file: a failed transaction leaves no change, and the next transaction works."""

import sqlite3
from pathlib import Path

import pytest

from sqa.core import ConfigError, DataError
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.storage import Database


def test_failed_transaction_is_undone(tmp_path: Path) -> None:
    database = Database(tmp_path / "file")
    with database.writing() as db:
        db.execute("CREATE TABLE t (x PRIMARY KEY)")
    for error, statement in ((DataError, "INSERT INTO t VALUES (1), (1)"), (KeyError, "INSERT INTO t VALUES (2)")):
        with pytest.raises(error), database.writing() as db:
            db.execute(statement)
            raise KeyError
    with database.writing() as db:
        db.execute("INSERT INTO t VALUES (3)")
    assert database.rows("SELECT x FROM t WHERE x > ?", 0) == [{"x": 3}]
    with pytest.raises(DataError, match="no such table"):
        database.rows("SELECT * FROM absent")
    (tmp_path / "text").write_text("no database" * 1000)
    with pytest.raises(ConfigError, match="cannot be used"):
        Database(tmp_path / "text")
    database.close()
    with sqlite3.connect(tmp_path / "file") as other:
        assert other.execute("SELECT x FROM t").fetchall() == [(3,)]


def test_full_disk_refuses_writes_until_freed(tmp_path: Path) -> None:
    """Regression test: a failed COMMIT left its transaction open, so every later transaction failed."""
    database = Database(tmp_path / "file")
    with database.writing() as db:
        db.execute("CREATE TABLE t (x)")
    pages = database.rows("PRAGMA page_count")[0]["page_count"]
    database.rows(f"PRAGMA max_page_count = {pages + 1}")
    for _ in range(2):
        with pytest.raises(DataError, match="full"), database.writing() as db:
            db.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    database.rows(f"PRAGMA max_page_count = {pages + 100}")
    with database.writing() as db:
        db.execute("INSERT INTO t VALUES (?)", ("y" * 100_000,))
    assert database.rows("SELECT substr(x, 1, 1) AS first FROM t") == [{"first": "y"}]
    database.close()


def test_failed_commit_is_undone(tmp_path: Path) -> None:
    database = Database(tmp_path / "file")
    with database.writing() as db:
        db.execute("CREATE TABLE a (x PRIMARY KEY)")
        db.execute("CREATE TABLE b (x REFERENCES a DEFERRABLE INITIALLY DEFERRED)")
    database.rows("PRAGMA foreign_keys = ON")
    with pytest.raises(DataError, match="FOREIGN KEY"), database.writing() as db:
        db.execute("INSERT INTO b VALUES (1)")
    with database.writing() as db:
        db.execute("INSERT INTO a VALUES (2)")
    assert database.rows("SELECT x FROM b") == [] and database.rows("SELECT x FROM a") == [{"x": 2}]
    database.close()


def test_only_the_owner_reads_a_board_in_an_old_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    board = Board.open(BoardConfig(tmp_path))
    with board.database.writing() as db:
        db.execute("CREATE TABLE t (x)")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    files = dict.fromkeys(("board.sqlite", "board.sqlite-wal", "board.sqlite-shm"), 0o600)
    assert modes == {"files": 0o700, "runs": 0o700, **files}
    board.database.close()
