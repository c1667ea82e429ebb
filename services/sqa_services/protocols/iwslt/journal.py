"""Journal of a server's sessions in SQLite, from which a killed server resumes.

A power failure can lose the most recent changes, but never the file.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.files.store import digest
from sqa_services.net.database import Database
from sqa_services.protocols.iwslt.corpus import EOS, Corpus, TextCorpus

VERSION = "2"
# Columns without a type keep integers (words) and fractions (ms) apart.
TABLES = (
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
CREATE TABLE IF NOT EXISTS sentences (
    session TEXT, number INTEGER, step, samples INTEGER, reads INTEGER, before_step, before_samples INTEGER,
    since REAL,  -- ms from the first read to the last change
    used REAL,  -- seconds since 1970 of the last change
    reach,  -- the most that was handed out
    PRIMARY KEY (session, number)) WITHOUT ROWID""",
    """
CREATE TABLE IF NOT EXISTS tokens (
    session TEXT, number INTEGER, place INTEGER, token TEXT, delay, elapsed REAL,
    PRIMARY KEY (session, number, place)) WITHOUT ROWID""",
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The state of one sentence; each request that changes it creates a new object."""

    step: float = 0  # position of the next read: words (the end counts as one) or ms
    samples: int = 0  # the same position for SimulEval's requests of a recording
    reads: int = 0  # number of reads
    before: tuple[float, int] = (0, 0)  # step and samples before the last read
    tokens: tuple[str, ...] = ()
    delays: tuple[float, ...] = ()
    elapsed: tuple[float, ...] = ()  # ms since the first read; for speech, in addition to the delay
    started: float | None = None  # time.monotonic() of the first read
    reach: float = 0  # furthest position sent so far, in the unit of `step`; it defines the delay

    @property
    def finished(self) -> bool:
        return EOS in self.tokens


class Journal:
    """An open journal; only one process can open it at a time."""

    def __init__(self, path: Path, corpus: str) -> None:
        """Open the journal of a corpus, identified by its digest.

        Raises ConfigError if the journal belongs to another corpus or is in use.
        """
        self.path = path
        self._db = Database(path, "locking_mode=EXCLUSIVE", "synchronous=NORMAL")
        with self._db.writing() as db:
            for statement in TABLES:
                db.execute(statement)
            db.execute("INSERT OR IGNORE INTO about VALUES ('corpus', ?), ('version', ?)", (corpus, VERSION))
            about = dict(db.execute("SELECT key, value FROM about"))
        if about != {"corpus": corpus, "version": VERSION}:
            self.close()
            problem = f"{path} belongs to another corpus or release; name another file, or delete it to start again"
            raise ConfigError(f"--journal: {problem}")

    def sessions(self) -> list[str]:
        """Return the names of all sessions, sorted."""
        return [name for (name,) in self._db.rows("SELECT DISTINCT session FROM sentences ORDER BY session")]

    def load(self, session: str) -> dict[int, Sentence]:
        """Return the sentences of a session by number, empty if it is unknown.

        Raises DataError if they are damaged.
        """
        sentences: dict[int, Sentence] = {}
        try:
            tokens: dict[int, list[tuple[Any, ...]]] = {}
            query = "SELECT number, token, delay, elapsed FROM tokens WHERE session = ? ORDER BY number, place"
            for number, *values in self._db.rows(query, session):
                tokens.setdefault(number, []).append(tuple(values))
            columns = "number, step, samples, reads, before_step, before_samples, since, reach"
            rows = self._db.rows(f"SELECT {columns} FROM sentences WHERE session = ?", session)
            for number, step, samples, reads, before, before_samples, since, reach in rows:
                started = time.monotonic() - since / 1000
                rows_of_it = tokens.pop(number, [])
                said, delays, elapsed = (tuple(row[column] for row in rows_of_it) for column in range(3))
                cursors = (before, before_samples)
                sentences[number] = Sentence(step, samples, reads, cursors, said, delays, elapsed, started, reach)
            if tokens:
                raise ValueError(f"tokens of an unknown sentence {min(tokens)}")
        except (TypeError, ValueError) as error:
            problem = f"{self.path}: damaged ({error!r}); name another file, or delete it to start again"
            raise DataError(problem) from error
        return sentences

    def save(self, session: str, number: int, sentence: Sentence, first: int) -> None:
        """Save the state of a sentence, with its tokens from `first` on."""
        since = (time.monotonic() - (sentence.started or time.monotonic())) * 1000
        cursors = (sentence.step, sentence.samples, sentence.reads, *sentence.before)
        row = (session, number, *cursors, since, time.time(), sentence.reach)
        tokens = zip(sentence.tokens[first:], sentence.delays[first:], sentence.elapsed[first:], strict=True)
        with self._db.writing() as db:
            db.execute("INSERT OR REPLACE INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            db.executemany(
                "INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?)",
                [(session, number, position, *values) for position, values in enumerate(tokens, start=first)],
            )

    def forget(self, session: str) -> None:
        """Delete a session that was reset or ended."""
        with self._db.writing() as db:
            for table in ("sentences", "tokens"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))

    def close(self) -> None:
        self._db.close()


def corpus_digest(corpus: Corpus) -> str:
    """Return the SHA-256 of the sources and references."""
    if isinstance(corpus, TextCorpus):
        return digest(["text", corpus.sources, corpus.targets])
    return digest(["speech", [(str(r.path), r.rate, r.samples) for r in corpus.recordings], corpus.targets])
