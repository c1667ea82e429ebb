"""What a server's sessions have read and written, in a file (SQLite) as it comes: a server that was killed goes on.

A change is in the file before the client is told that it was made; a process that is killed at any moment loses none
that was told.  (What the system itself loses with the power is the last moments at most, and never the file.)
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqa.core.errors import ConfigError, DataError
from sqa.files.store import digest
from sqa_services.protocols.iwslt.corpus import SpeechCorpus, TextCorpus
from sqa_services.protocols.iwslt.sentence import Sentence

VERSION = 2
# words are whole numbers and ms may be fractions: columns without a type keep which it was
TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sentences (
    session TEXT, number INTEGER, step, samples INTEGER, reads INTEGER, before_step, before_samples INTEGER,
    since REAL,  -- ms from the first read to the last change
    used REAL,  -- seconds since 1970 of the last change
    reach,  -- the most that was handed out
    PRIMARY KEY (session, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    session TEXT, number INTEGER, place INTEGER, token TEXT, delay, elapsed REAL,
    PRIMARY KEY (session, number, place)) WITHOUT ROWID;
"""
FROM_1 = """
BEGIN;
ALTER TABLE sentences ADD COLUMN reach;
UPDATE sentences SET reach = max(step, before_step);
UPDATE about SET value = '2' WHERE key = 'version';
COMMIT;
"""
Kept = dict[str, dict[int, Sentence]]  # session -> sentence number -> its state


class Journal:
    """An open journal; one process has it at a time."""

    def __init__(self, path: Path, corpus: str) -> None:
        """`corpus`: a digest of what is read out.  A journal of another one, or in use: ConfigError."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(TABLES)
            self._db.execute("INSERT OR IGNORE INTO about VALUES ('corpus', ?), ('version', ?)", (corpus, str(VERSION)))
            about = dict(self._db.execute("SELECT key, value FROM about"))
            if about == {"corpus": corpus, "version": "1"}:
                self._db.executescript(FROM_1)
                about["version"] = str(VERSION)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last of a damaged file's own error
            raise ConfigError(
                f"--journal: {path} cannot be used ({error}); is another server running on it?"
            ) from error
        if about != {"corpus": corpus, "version": str(VERSION)}:
            self._db.close()
            raise ConfigError(f"--journal: {path} is of another corpus; name another file, or delete it to begin anew")

    def load(self) -> tuple[Kept, dict[str, float]]:
        """The sentences of all sessions, and the seconds since each session was last used."""
        kept: Kept = {}
        ages: dict[str, float] = {}
        now = time.time()
        with self._failing():
            for name, number, step, samples, reads, before, before_samples, since, used, reach in self._db.execute(
                "SELECT * FROM sentences"
            ):
                started = time.monotonic() - since / 1000
                state = Sentence(step, samples, reads, (before, before_samples), started=started, reach=reach)
                kept.setdefault(name, {})[number] = state
                ages[name] = min(ages.get(name, now), max(0.0, now - used))
            for name, number, _, token, delay, elapsed in self._db.execute(
                "SELECT * FROM tokens ORDER BY session, number, place"
            ):
                state = kept[name][number]  # a KeyError where somebody has meddled with the file
                state.tokens.append(token)
                state.delays.append(delay)
                state.elapsed.append(elapsed)
        return kept, ages

    def save(self, session: str, number: int, sentence: Sentence, first: int) -> None:
        """The state of a sentence, with its tokens from `first` on."""
        since = (time.monotonic() - (sentence.started or time.monotonic())) * 1000
        cursors = (sentence.step, sentence.samples, sentence.reads, *sentence.before)
        row = (session, number, *cursors, since, time.time(), sentence.reach)
        new = zip(sentence.tokens[first:], sentence.delays[first:], sentence.elapsed[first:], strict=True)
        with self._failing():
            self._db.execute("BEGIN")
            self._db.execute("INSERT OR REPLACE INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            self._db.executemany(
                "INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?)",
                [(session, number, first + place, *values) for place, values in enumerate(new)],
            )
            self._db.execute("COMMIT")

    def forget(self, session: str) -> None:
        """A session that was reset, ended or has expired."""
        with self._failing():
            self._db.execute("BEGIN")
            for table in ("sentences", "tokens"):
                self._db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """An error of the file is a DataError, and leaves no transaction open."""
        try:
            yield
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"{self.path}: damaged ({error!r}); name another file, or delete it to begin anew"
            ) from error
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.rollback()
            raise DataError(f"{self.path}: {error}") from error


def corpus_digest(corpus: TextCorpus | SpeechCorpus) -> str:
    """sha256 of what is read out and of its references."""
    if isinstance(corpus, TextCorpus):
        return digest(["text", corpus.sources, corpus.targets])
    return digest(["speech", [(str(r.path), r.rate, r.samples) for r in corpus.recordings], corpus.targets])
