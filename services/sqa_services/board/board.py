"""The board: registered data sets and models, results and the leaderboard, in a database and a folder.

board = Board(BoardConfig(Path("board")))
board.register_dataset("sqa-es", "xqb", "xqb-es", perturbations=["typos"])
board.register_model("sqa-es", "wait-6", "config", Path("configs/xqb_es_wait6_bm25.yaml").read_bytes())
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from sqa.core import ConfigError, did_you_mean
from sqa.files import write_bytes
from sqa_services.board import queue, rank
from sqa_services.board.storage import (
    Database,
    as_lines,
    data_path,
    model_path,
    open_database,
    predictions_path,
    split_prefix,
    stored_lines,
)
from sqa_services.board.task import KINDS, Example, NotFound, Taken, Task, TooMany, check_name, load_tasks

DAY = 86_400
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BoardConfig:
    """Storage of a board, and its additional tasks."""

    folder: Path = Path("board")
    tasks: Annotated[tuple[str, ...], 'custom tasks: "module:function" that returns a Task'] = ()
    metrics: Annotated[tuple[str, ...], "additional metrics of every task: a name, or file.py:build"] = ()

    @property
    def work(self) -> Path:
        """Folder of stored stage results, from which an evaluation resumes after its worker was killed."""
        return self.folder / "runs"


@dataclass(frozen=True, slots=True)
class Board:
    """An open board."""

    config: BoardConfig
    tasks: dict[str, Task]
    files: Path  # folder of files, which are written atomically
    database: Database

    @classmethod
    def open(cls, config: BoardConfig) -> Board:
        """Open a board; create its database and folders, which only their owner may read, if they are missing."""
        folder, tasks = config.folder.absolute(), load_tasks(config.tasks, config.metrics)
        files = folder / "files"
        for private in (files, config.work):
            private.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(config, tasks, files, open_database(folder / "board.sqlite"))

    def task(self, code: str) -> Task:
        """Return the task with this code.  Raises NotFound if there is none."""
        if code not in self.tasks:
            raise NotFound(f"no task {code!r}{did_you_mean(code, self.tasks)}; known: {', '.join(self.tasks)}")
        return self.tasks[code]

    # -------------------------------------------------------------------------------------------- registration

    def register_dataset(
        self, code: str, name: str, source: str, perturbations: Sequence[str] = (), seed: int = 0
    ) -> Row:
        """Store a data set and its perturbed copies, and queue an evaluation of every model of the task."""
        task = self.task(code)
        check_name(name, "data set")
        if not 0 <= seed < 2**31:
            raise ConfigError(f"seed: must be from 0 to 2147483647, got {seed}")
        for prefix in task.delta_metrics:
            if name.startswith(f"{prefix}-"):
                raise ConfigError(f"data set: a name must not start with {prefix}-, which marks perturbed copies")
        originals = task.load(source)
        copies = task.perturb(originals, perturbations, seed)
        files = {data_path(code, name, prefix): as_lines(rows) for prefix, rows in {"": originals, **copies}.items()}
        row = {"seed": seed, "prefixes": [*copies], "examples": len(originals)}
        return self._add("datasets", task, name, row, files)

    def copies(self, code: str, name: str, kinds: Sequence[str]) -> dict[str, list[Example]]:
        """Return the perturbed copies of a data set's examples by prefix, without storing them."""
        row, prefix = self.dataset(code, name)
        if prefix or not kinds:
            raise ConfigError("perturb: name a data set without a prefix, and at least one kind")
        copies = self.task(code).perturb(stored_lines(self.files, data_path(code, name)), kinds, row["seed"])
        if not copies:
            raise ConfigError(f"perturb: {', '.join(kinds)} changes no example of {name}")
        return copies

    def perturb(self, code: str, name: str, kinds: Sequence[str]) -> Row:
        """Add perturbed copies to a data set and queue every model on them.

        The copies equal those that `register_dataset` would have stored.  Returns "prefixes", the families added, and
        "queued", the number of evaluations.

        Raises:
            Taken: The data set already has copies of a family.
        """
        copies = self.copies(code, name, kinds)
        with self.database.writing() as db:
            this = "WHERE task = ? AND name = ?"
            [row] = db.execute(f"SELECT prefixes FROM datasets {this}", (code, name))
            present = json.loads(row["prefixes"])
            if both := [prefix for prefix in copies if prefix in present]:
                raise Taken(f"{name}: already has {both[0]} copies, which are immutable; register it under a new name")
            for prefix, rows in copies.items():
                write_bytes(self.files / data_path(code, name, prefix), as_lines(rows))
            db.execute(f"UPDATE datasets SET prefixes = ? {this}", (json.dumps([*present, *copies]), code, name))
            return {"prefixes": [*copies], "queued": queue.fill(db)}

    def register_model(self, code: str, name: str, kind: str, data: bytes) -> Row:
        """Store a model's file, and queue its evaluation on every data set of the task."""
        task = self.task(code)
        check_name(name, "model")
        if kind not in KINDS:
            raise ConfigError(f"model: its kind must be one of {', '.join(KINDS)}, got {kind!r}")
        task.check_model(kind, data)
        return self._add("models", task, name, {"kind": kind}, {model_path(code, name, kind): data})

    def require_free(self, code: str, name: str) -> None:
        """Raise Taken if the task has a model of that name."""
        if self.database.rows("SELECT id FROM models WHERE task = ? AND name = ?", code, name):
            raise _taken("models", code, name)

    def spend(self, per_day: int) -> None:
        """Count a submission against today's limit (UTC), even if the submission is refused later.

        Raises TooMany if `per_day` submissions are counted already.
        """
        query = """INSERT INTO days VALUES (?, 1) ON CONFLICT DO UPDATE SET sent = sent + 1 WHERE sent < ?"""
        with self.database.writing() as db:
            if not db.execute(query, (int(time.time() // DAY), per_day)).rowcount:
                raise TooMany(f"today's {per_day} submissions are used up, also by refused ones; try again tomorrow")

    def _add(self, table: str, task: Task, name: str, more: Row, files: Mapping[str, bytes]) -> Row:
        """Add a row, write its files and queue its evaluations in one transaction; the row reserves the name."""
        row = {"task": task.code, "name": name, **more, "created": time.time()}
        cells = [json.dumps(cell) if isinstance(cell, list) else cell for cell in row.values()]
        with self.database.writing() as db:
            query = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))}) RETURNING id"
            try:
                [added] = db.execute(query, cells)
            except sqlite3.IntegrityError as error:
                raise _taken(table, task.code, name) from error
            for path, data in files.items():
                write_bytes(self.files / path, data)
            queued = queue.fill(db)
        return {**row, "id": added["id"], "queued": queued}

    # ---------------------------------------------------------------------------------------- registered models

    def _model(self, db: sqlite3.Connection, code: str, name: str) -> Row:
        """Return the row of a model.  Raises NotFound if it is unknown."""
        row: Row | None = db.execute("SELECT * FROM models WHERE task = ? AND name = ?", (code, name)).fetchone()
        if row is None:
            raise NotFound(f"no model {name!r}")
        return row

    def requeue(self, code: str, name: str) -> int:
        """Queue a model's failed evaluations again, and return their number.  Raises NotFound if it is unknown."""
        query = """
            UPDATE evaluations SET state = 'queued', attempts = 0, error = NULL, queued = ?, started = NULL,
            finished = NULL WHERE model = ? AND state = 'failed'"""
        with self.database.writing() as db:
            return db.execute(query, (time.time(), self._model(db, code, name)["id"])).rowcount

    def remove(self, code: str, name: str) -> None:
        """Delete a model, its results and its files, but not the digests of its answers, and free its name.

        Raises NotFound if it is unknown.
        """
        query = "SELECT d.name, e.prefix FROM evaluations e JOIN datasets d ON d.id = e.dataset WHERE e.model = ?"
        with self.database.writing() as db:
            model = self._model(db, code, name)
            files = [predictions_path(code, name, **row) for row in db.execute(query, (model["id"],)).fetchall()]
            db.execute("DELETE FROM models WHERE id = ?", (model["id"],))
            for path in (*files, model_path(code, name, model["kind"])):
                (self.files / path).unlink(missing_ok=True)

    # ------------------------------------------------------------------------------------------------- reading

    def datasets(self, code: str) -> list[Row]:
        """Return the data sets of a task in the order of registration."""
        self.task(code)
        rows = self.database.rows("SELECT * FROM datasets WHERE task = ? ORDER BY id", code)
        return [{**row, "prefixes": json.loads(row["prefixes"])} for row in rows]

    def models(self, code: str) -> list[Row]:
        """Return the models of a task in the order of registration."""
        self.task(code)
        return self.database.rows("SELECT * FROM models WHERE task = ? ORDER BY id", code)

    def dataset(self, code: str, name: str) -> tuple[Row, str]:
        """Return the row of a data set and the prefix in `name`, which is NAME (prefix "") or PREFIX-NAME.

        Raises NotFound if the data set or the prefix is unknown.
        """
        rows = {row["name"]: row for row in self.datasets(code)}
        base, prefix = split_prefix(name, rows)
        if prefix and prefix not in rows[base]["prefixes"]:
            raise NotFound(f"Dataset {name} not found.")
        return rows[base], prefix or ""

    def examples(self, code: str, name: str) -> list[Example]:
        """Return the examples of the data set NAME, or its perturbed copies for PREFIX-NAME."""
        row, prefix = self.dataset(code, name)
        return stored_lines(self.files, data_path(code, row["name"], prefix))

    def evaluations(self, code: str, state: str | None = None) -> list[Row]:
        """Return the evaluations of a task, optionally in one state, in the order of queueing."""
        self.task(code)
        query = """
            SELECT e.id, m.task, m.name AS model, d.name AS dataset, e.prefix, e.state, e.attempts, e.error, e.queued,
            e.started, e.finished, e.result FROM evaluations e JOIN models m ON m.id = e.model
            JOIN datasets d ON d.id = e.dataset WHERE m.task = ? AND e.state = COALESCE(?, e.state) ORDER BY e.id"""
        rows = self.database.rows(query, code, state)
        return [{**row, "result": row["result"] and json.loads(row["result"])} for row in rows]

    def leaderboard(self, code: str, weights: str | None = None, datasets: Sequence[str] = ()) -> Row:
        """Rank the models by Dynascore, best first.

        Metrics are means over data sets.  A model that lacks a weighted metric has no Dynascore.

        Args:
            weights: Weights of the metrics, such as "ew=4,dal=1"; None uses the task's weights of all metrics that the
                data sets have.
            datasets: Names of data sets; by default all data sets of the task.

        Raises:
            NotFound: A data set is unknown.
            ConfigError: The weights are invalid.
        """
        task = self.task(code)
        weighted = None if weights is None else rank.parse_weights(weights, task.metrics)
        registered = {row["name"]: row for row in self.datasets(code)}
        for name in datasets:
            if name not in registered:
                raise NotFound(f"no data set {name!r}")
        used = list(dict.fromkeys(datasets)) or list(registered)
        if weighted is None:
            lacking = {
                delta for delta in task.delta_metrics for name in used if delta not in registered[name]["prefixes"]
            }
            weighted = {name: weight for name, weight in task.default_weights.items() if name not in lacking}
            weighted = weighted or {task.perf_metric: 1.0}
        done = self.evaluations(code, "done")
        ranked = rank.rank(task, self.models(code), done, used, weighted)
        return {
            "task": code,
            "rank_version": rank.VERSION,
            "perf_metric": task.perf_metric,
            "datasets": used,
            "weights": {name: weighted.get(name, 0.0) for name in task.metrics},
            "metrics": rank.about_metrics(task),
            **ranked,
        }


def _taken(table: str, code: str, name: str) -> Taken:
    return Taken(f"{table}: {code} already has {name!r}; registered entries are immutable")
