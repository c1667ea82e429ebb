"""What a server's sessions have read and written, in SQLite: a killed server goes on from it.

A power failure can lose the last moments, never the file.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

from sqa.core.errors import ConfigError, DataError
from sqa.files.store import digest
from sqa_services.net.database import Database
from sqa_services.protocols.iwslt.corpus import EOS, Corpus, TextCorpus

VERSION = 2
# words are whole numbers and ms may be fractions: columns without a type keep which it was
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
FROM_1 = (
    "ALTER TABLE sentences ADD COLUMN reach",
    "UPDATE sentences SET reach = max(step, before_step)",
    "UPDATE about SET value = '2' WHERE key = 'version'",
)


@dataclass(slots=True)
class Sentence:
    """The state of one sentence."""

    step: float = 0  # where the next read begins: words, the end counted as one, or ms
    samples: int = 0  # the same of a recording by SimulEval's requests
    reads: int = 0  # requests that read it
    before: tuple[float, int] = (0, 0)  # step and samples before the last of them
    tokens: list[str] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    elapsed: list[float] = field(default_factory=list)  # ms since the first read; of speech, on top of the delay
    started: float | None = None  # time.monotonic() of the first read
    reach: float = 0  # the most that was ever handed out, in the unit of `step`: what a delay is

    @property
    def finished(self) -> bool:
        return EOS in self.tokens


Sessions = dict[str, dict[int, Sentence]]  # session -> sentence number -> its state


class Journal:
    """An open journal; one process has it at a time."""

    def __init__(self, path: Path, corpus: str) -> None:
        """`corpus`: a digest of what is read out.  A journal of another one, or in use: ConfigError."""
        self.path = path
        self._db = Database(path, "locking_mode=EXCLUSIVE", "synchronous=NORMAL")
        with self._db.writing() as db:
            for statement in TABLES:
                db.execute(statement)
            db.execute("INSERT OR IGNORE INTO about VALUES ('corpus', ?), ('version', ?)", (corpus, str(VERSION)))
            about = dict(db.execute("SELECT key, value FROM about"))
            if about == {"corpus": corpus, "version": "1"}:
                for statement in FROM_1:
                    db.execute(statement)
                about["version"] = str(VERSION)
        if about != {"corpus": corpus, "version": str(VERSION)}:
            self.close()
            raise ConfigError(f"--journal: {path} is of another corpus; name another file, or delete it to begin anew")

    def load(self) -> tuple[Sessions, dict[str, float]]:
        """The sentences of all sessions, and the seconds since each session was last used."""
        sessions: Sessions = {}
        ages: dict[str, float] = {}
        now = time.time()
        try:
            rows = self._db.rows("SELECT * FROM sentences")
            for name, number, step, samples, reads, before, before_samples, since, used, reach in rows:
                started = time.monotonic() - since / 1000
                state = Sentence(step, samples, reads, (before, before_samples), started=started, reach=reach)
                sessions.setdefault(name, {})[number] = state
                ages[name] = min(ages.get(name, now), max(0.0, now - used))
            rows = self._db.rows("SELECT * FROM tokens ORDER BY session, number, place")
            for name, number, _, token, delay, elapsed in rows:
                state = sessions[name][number]
                state.tokens.append(token)
                state.delays.append(delay)
                state.elapsed.append(elapsed)
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{self.path}: damaged ({error!r}); name another file, or delete it to begin anew"
            raise DataError(problem) from error
        return sessions, ages

    def save(self, session: str, number: int, sentence: Sentence, first: int) -> None:
        """The state of a sentence, with its tokens from `first` on."""
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
        """Delete a session that was reset, ended or has expired."""
        with self._db.writing() as db:
            for table in ("sentences", "tokens"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))

    def close(self) -> None:
        self._db.close()


def corpus_digest(corpus: Corpus) -> str:
    """sha256 of what is read out and of its references."""
    if isinstance(corpus, TextCorpus):
        return digest(["text", corpus.sources, corpus.targets])
    return digest(["speech", [(str(r.path), r.rate, r.samples) for r in corpus.recordings], corpus.targets])
