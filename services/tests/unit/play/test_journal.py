"""Entries of the journal of games that are kept, lost or deleted."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from sqa.core.errors import ConfigError, DataError
from sqa_services.play.journal import Game, Journal, Play

GAME = Game("abc", "/runs/a", "key", None, "two", 120.0, ("q0", "q1"))


def filled(path: Path) -> tuple[Journal, str, str]:
    book = Journal(path)
    (first, _), (second, _) = book.add_player("hash"), book.add_player("hash")
    book.add_game(GAME, first)
    book.sit_down("abc", 1, second)
    book.begin("abc", 0, "q0", [first, second])
    book.finish(Play("abc", 0, 0, first, "q0", "done", 3, 1.5, "a memorable answer"))
    return book, first, second


def test_kill_loses_only_the_current_question(tmp_path: Path) -> None:
    book, first, second = filled(tmp_path / "g.sqlite")
    book.close()
    book = Journal(tmp_path / "g.sqlite")
    assert book.lose_open() == 1 and book.game("abc") == GAME and book.seats("abc") == [first, second]
    assert [(p.seat, p.state, p.step, p.answer) for p in book.plays("abc")] == [
        (0, "done", 3, "a memorable answer"),
        (1, "lost", None, ""),
    ]
    assert book.players() == [(first, 1), (second, 0)] and book.seen(second) == {"q0"}


def test_deleted_player_is_erased_from_the_file(tmp_path: Path) -> None:
    book, first, second = filled(tmp_path / "g.sqlite")
    assert any(b"memorable" in path.read_bytes() for path in tmp_path.iterdir())
    assert book.forget(first) and not book.forget(first)
    assert [p.player for p in book.plays("abc")] == [second] and book.game("abc") == GAME
    book.finish(Play("abc", 0, 0, first, "q0", "done", 3, 1.5, "too late"))
    assert book.forget(second) and book.games() == []
    book.close()
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert not [text for text in (b"memorable", first.encode(), second.encode(), b"q0") if text in content]


def test_question_begins_once_per_player(tmp_path: Path) -> None:
    book, first, second = filled(tmp_path / "g.sqlite")
    third, _ = book.add_player("hash")
    book.add_game(replace(GAME, id="def"), third)
    assert not book.begin("def", 0, "q0", [third, second]) and not book.begin("def", 0, "q7", [first], ["q0"])
    assert book.begin("def", 0, "q0", [third]) and book.begin("def", 1, "q1", [third, second])
    assert [(play.game, play.index, play.question) for play in book.plays()][2:] == [
        ("def", 0, "q0"),
        ("def", 1, "q1"),
        ("def", 1, "q1"),
    ]


def test_keys_are_stored_as_hashes(tmp_path: Path) -> None:
    book = Journal(tmp_path / "g.sqlite")
    player, key = book.add_player("hash")
    assert book.player(key) == player and book.player("") is None and book.player(key + "x") is None
    book.close()
    assert not any(key.encode() in path.read_bytes() for path in tmp_path.iterdir())


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(ConfigError, match="cannot be used"):
        Journal(tmp_path / "text")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    with pytest.raises(DataError, match="version 0, not 1"):
        Journal(tmp_path / "other")
