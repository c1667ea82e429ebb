"""Journal of people's games in SQLite.

    players   random id, hash of the player's key, hash of the accepted consent text; no name, no address
    games     run whose translation is read, run played against, pace, questions
    seats     players of a game
    plays     a question of a game for one player, in the order of play: state, step and answer; scores are computed
              from the run's trace.  States: "shown" (in progress), "done", "lost" (the server ended meanwhile)

A play is on disk before its player sees the answer, so killing the server loses only the current question.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from sqa.core.errors import DataError
from sqa.files.records import parse_json
from sqa_services.net.database import Database

FILE = "games.sqlite"
VERSION = 1  # version of the tables
Mode = Literal["alone", "system", "two"]
_TABLES = """
CREATE TABLE players (id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, consent TEXT NOT NULL, since REAL NOT NULL);
CREATE TABLE games (id TEXT PRIMARY KEY, run TEXT NOT NULL, translation TEXT NOT NULL, system TEXT, mode TEXT NOT NULL,
    pace REAL NOT NULL, questions TEXT NOT NULL, since REAL NOT NULL);
CREATE TABLE seats (game TEXT NOT NULL REFERENCES games ON DELETE CASCADE, seat INTEGER NOT NULL,
    player TEXT NOT NULL REFERENCES players ON DELETE CASCADE, PRIMARY KEY (game, seat));
CREATE TABLE plays (game TEXT NOT NULL REFERENCES games ON DELETE CASCADE, place INTEGER NOT NULL,
    seat INTEGER NOT NULL, player TEXT NOT NULL REFERENCES players ON DELETE CASCADE, question TEXT NOT NULL,
    state TEXT NOT NULL, step INTEGER, seconds REAL, answer TEXT, PRIMARY KEY (game, place, seat));
"""


@dataclass(frozen=True, slots=True)
class Game:
    """Settings of a game."""

    id: str
    run: str  # folder of the run whose translation is read
    translation: str  # store key of the translation
    system: str | None  # folder of the system's run; None: no run has a buzzer
    mode: Mode
    pace: float  # target words per minute
    questions: tuple[str, ...]  # question ids, in the order they are shown

    @property
    def seats(self) -> int:
        """Number of players."""
        return 2 if self.mode == "two" else 1


@dataclass(frozen=True, slots=True)
class Play:
    """One question of a game for one player."""

    game: str
    index: int  # 0-based index among the questions of the game
    seat: int  # 0-based seat
    player: str
    question: str
    state: str  # "shown", "done", "lost"
    step: int | None = None  # last step seen before the buzz; None: no buzz
    seconds: float | None = None  # seconds from the question's start to the buzz, by the server's clock
    answer: str = ""  # "": no answer in time


class Journal:
    """The SQLite file, for any number of threads of one process."""

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises ConfigError or DataError if the file belongs to another program or version.
        """
        self.path = path
        self._db = Database(path, "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")
        with self._db.writing() as db:
            [version] = db.execute("PRAGMA user_version").fetchone()
            if not version and not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _TABLES.split(";\n")[:-1]:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version={VERSION}")
                version = VERSION
        if version != VERSION:
            raise DataError(f"{path}: has tables of version {version}, not {VERSION}; name another folder with --games")
        self.close = self._db.close

    # ------------------------------------------------------------------------------------------------ players

    def add_player(self, consent: str) -> tuple[str, str]:
        """Add a player who agreed to the consent text with this hash; return (public id, secret key)."""
        id, key = f"p-{secrets.token_hex(4)}", secrets.token_urlsafe(24)
        with self._db.writing() as db:
            db.execute("INSERT INTO players VALUES (?, ?, ?, ?)", (id, _hash(key), consent, time.time()))
        return id, key

    def player(self, key: str) -> str | None:
        """Return the id of the player with this key, or None if there is none."""
        ids = self._db.rows("SELECT id FROM players WHERE key = ?", _hash(key))
        return ids[0][0] if ids else None

    def players(self) -> list[tuple[str, int]]:
        """Return (id, finished questions) of every player."""
        finished = "SELECT COUNT(*) FROM plays WHERE player = id AND state = 'done'"
        return self._db.rows(f"SELECT id, ({finished}) FROM players ORDER BY since, id")

    def forget(self, player: str) -> bool:
        """Delete a player and all their plays, overwriting the data; return False if there is no such player."""
        with self._db.writing() as db:
            deleted = db.execute("DELETE FROM players WHERE id = ?", (player,)).rowcount
            db.execute("DELETE FROM games WHERE id NOT IN (SELECT game FROM seats)")
        self._db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return bool(deleted)

    # -------------------------------------------------------------------------------------------------- games

    def add_game(self, game: Game, player: str) -> None:
        """Add a game with its first player."""
        row = (*astuple(game)[:-1], json.dumps(game.questions), time.time())
        with self._db.writing() as db:
            db.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            db.execute("INSERT INTO seats VALUES (?, 0, ?)", (game.id, player))

    def sit_down(self, game: str, seat: int, player: str) -> None:
        """Add a further player to a game."""
        with self._db.writing() as db:
            db.execute("INSERT INTO seats VALUES (?, ?, ?)", (game, seat, player))

    def game(self, id: str) -> Game | None:
        """Return a game by its id, or None if it does not exist."""
        return next(iter(self._games("WHERE id = ?", id)), None)

    def games(self) -> list[Game]:
        """Return all games, oldest first."""
        return self._games("ORDER BY since, id")

    def _games(self, which: str, *values: str) -> list[Game]:
        rows = self._db.rows(f"SELECT * FROM games {which}", *values)
        return [Game(*[*row, tuple(parse_json(questions))]) for *row, questions, _ in rows]

    def seats(self, game: str) -> list[str]:
        """Return the players of a game by seat, up to the first seat whose player was deleted."""
        rows = self._db.rows("SELECT seat, player FROM seats WHERE game = ? ORDER BY seat", game)
        return [player for index, (seat, player) in enumerate(rows) if index == seat]

    def seen(self, player: str) -> set[str]:
        """Return the ids of all questions that a player has been shown."""
        return {question for (question,) in self._db.rows("SELECT question FROM plays WHERE player = ?", player)}

    # -------------------------------------------------------------------------------------------------- plays

    def begin(self, game: str, index: int, question: str, players: Sequence[str], same: Sequence[str] = ()) -> bool:
        """Record that a question of a game is about to be shown.

        Returns False, without recording it, if a player has already seen the question or one with an id in `same`.
        """
        with self._db.writing() as db:
            ids = (question, *same)
            which = f"player IN ({_marks(players)}) AND question IN ({_marks(ids)})"
            if db.execute(f"SELECT 1 FROM plays WHERE {which}", (*players, *ids)).fetchone():
                return False
            plays = [(game, index, seat, player, question) for seat, player in enumerate(players)]
            db.executemany("INSERT INTO plays VALUES (?, ?, ?, ?, ?, 'shown', NULL, NULL, NULL)", plays)
        return True

    def finish(self, play: Play) -> None:
        """Record the outcome of a play; has no effect if the player was deleted in the meantime."""
        with self._db.writing() as db:
            outcome, row = (play.state, play.step, play.seconds, play.answer), (play.game, play.index, play.seat)
            values = "state = ?, step = ?, seconds = ?, answer = ?"
            db.execute(f"UPDATE plays SET {values} WHERE game = ? AND place = ? AND seat = ?", (*outcome, *row))

    def lose_open(self) -> int:
        """Mark the questions that were in progress when the last server ended as lost; return their number."""
        with self._db.writing() as db:
            return db.execute("UPDATE plays SET state = 'lost' WHERE state = 'shown'").rowcount

    def plays(self, game: str | None = None) -> list[Play]:
        """Return the plays of a game, or of all games, in the order of play."""
        rows = self._db.rows("SELECT * FROM plays WHERE game = ?1 OR ?1 IS NULL ORDER BY rowid", game)
        return [Play(*[*row, answer or ""]) for *row, answer in rows]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
