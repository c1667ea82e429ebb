"""The board: what is registered, what came out, and the leaderboard.  All of it is in a database and a folder.

board = Board(BoardConfig(Path("board")))
board.register_dataset("sqa-es", "xqb", "xqb-es", perturbations=["typos"])
board.register_model("sqa-es", "wait-6", "config", Path("configs/xqb_es_wait6_bm25.yaml").read_bytes())
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, insert, select
from sqlalchemy.exc import IntegrityError

from sqa.board import queue
from sqa.board.dynascore import dynascore
from sqa.board.files import Files, as_lines, data_path, model_path, split_prefix
from sqa.board.metrics import meta_of
from sqa.board.storage import DATASETS, EVALUATIONS, MODELS, SCORES, open_engine
from sqa.board.task import KINDS, Example, Task, check_name, find_task, load_tasks
from sqa.core.errors import ConfigError, DataError, NotComputable


class Taken(ConfigError):
    """The name is in use already."""


class NotFound(DataError):
    """There is no such thing on the board."""


@dataclass(frozen=True, slots=True)
class BoardConfig:
    """Where a board keeps its things."""

    folder: Path = Path("board")
    db: str | None = None  # database URL; None = SQLite in <folder>/board.sqlite
    files: str | None = None  # fsspec URL; None = <folder>/files
    tasks: tuple[str, ...] = ()  # your own: "module:function" that makes a Task

    @property
    def work(self) -> Path:
        """Stage results of runs, so that a killed evaluation goes on where it was."""
        return self.folder / "runs"


@dataclass(frozen=True, slots=True)
class Board:
    """A board that is open."""

    config: BoardConfig
    tasks: dict[str, Task]
    files: Files
    engine: Engine

    @classmethod
    def open(cls, config: BoardConfig) -> Board:
        """Open a board; its folder and the tables of its database are made if they are missing."""
        config.folder.mkdir(parents=True, exist_ok=True)
        folder = config.folder.absolute()
        return cls(
            config,
            load_tasks(config.tasks),
            Files(config.files or str(folder / "files")),
            open_engine(config.db or f"sqlite:///{folder / 'board.sqlite'}"),
        )

    def task(self, code: str) -> Task:
        """The task of a code.  Unknown: ConfigError."""
        return find_task(self.tasks, code)

    # -------------------------------------------------------------------------------------------- registration

    def register_dataset(
        self, code: str, name: str, source: str, perturbations: Sequence[str] = (), seed: int = 0
    ) -> dict[str, Any]:
        """Write the data and their perturbed copies, and queue an evaluation of every model of the task."""
        task = self.task(code)
        check_name(name, "data set")
        if not 0 <= seed < 2**31:
            raise ConfigError(f"seed: must be from 0 to 2147483647, got {seed}")
        self._free(DATASETS, code, name)
        for prefix in task.delta_metrics:
            if name.startswith(f"{prefix}-"):
                raise ConfigError(f"data set: a name must not start with {prefix}-, which marks perturbed copies")
        loaded = task.data.load(source, seed, perturbations)
        files = {data_path(code, name, prefix): as_lines(examples) for prefix, examples in loaded.items()}
        prefixes = [prefix for prefix in loaded if prefix]
        row = {"task": code, "name": name, "seed": seed, "prefixes": prefixes, "examples": len(loaded[""])}
        return self._add(DATASETS, row, files)

    def register_model(self, code: str, name: str, kind: str, data: bytes) -> dict[str, Any]:
        """Keep a model's file, and queue its evaluation on every data set of the task."""
        task = self.task(code)
        check_name(name, "model")
        self._free(MODELS, code, name)
        if kind not in KINDS:
            raise ConfigError(f"model: its kind must be one of {', '.join(KINDS)}, got {kind!r}")
        task.check_model(kind, data)
        return self._add(MODELS, {"task": code, "name": name, "kind": kind}, {model_path(code, name, kind): data})

    def _free(self, table: Any, code: str, name: str) -> None:
        with self.engine.connect() as connection:
            if connection.execute(select(table.c.id).where(table.c.task == code, table.c.name == name)).first():
                raise Taken(f"{table.name}: {code} has a {name!r} already; what is registered does not change")

    def _add(self, table: Any, row: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
        """One transaction: the row, which keeps the name from others, its files, and the evaluations that follow."""
        with self.engine.begin() as connection:
            try:
                [id] = connection.execute(insert(table).values(**row)).inserted_primary_key
            except IntegrityError as error:
                raise Taken(f"{table.name}: {row['task']} has a {row['name']!r} already") from error
            for path, data in files.items():
                self.files.write(path, data)
            queued = queue.fill(connection)
        return {**row, "id": id, "queued": queued}

    # ------------------------------------------------------------------------------------------------- reading

    def datasets(self, code: str) -> list[dict[str, Any]]:
        """The data sets of a task, in the order of registration."""
        return self._rows(DATASETS, code)

    def models(self, code: str) -> list[dict[str, Any]]:
        """The models of a task, in the order of registration."""
        return self._rows(MODELS, code)

    def _rows(self, table: Any, code: str) -> list[dict[str, Any]]:
        self.task(code)
        with self.engine.connect() as connection:
            rows = connection.execute(select(table).where(table.c.task == code).order_by(table.c.id)).mappings()
            return [dict(row) for row in rows]

    def examples(self, code: str, name: str) -> list[Example]:
        """The examples of a data set, or with "<prefix>-" before its name of its perturbed copies."""
        known = {row["name"]: row["prefixes"] for row in self.datasets(code)}
        try:
            base, prefix = split_prefix(name, known)
        except DataError as error:
            raise NotFound(str(error)) from error
        if prefix is not None and prefix not in known[base]:
            raise NotFound(f"Dataset {name} not found.")
        return self.files.read_lines(data_path(code, base, prefix or ""))

    def evaluations(
        self, code: str | None = None, state: str | None = None, id: int | None = None
    ) -> list[dict[str, Any]]:
        """All evaluations, or those of a task, a state, an id, in the order in which they were queued."""
        query = (
            select(
                EVALUATIONS.c.id,
                MODELS.c.task,
                MODELS.c.name.label("model"),
                DATASETS.c.name.label("dataset"),
                EVALUATIONS.c.prefix,
                EVALUATIONS.c.state,
                EVALUATIONS.c.attempts,
                EVALUATIONS.c.error,
                SCORES.c.result,
            )
            .join(MODELS, MODELS.c.id == EVALUATIONS.c.model)
            .join(DATASETS, DATASETS.c.id == EVALUATIONS.c.dataset)
            .outerjoin(SCORES, SCORES.c.evaluation == EVALUATIONS.c.id)
            .order_by(EVALUATIONS.c.id)
        )
        if code is not None:
            self.task(code)
            query = query.where(MODELS.c.task == code)
        if state is not None:
            query = query.where(EVALUATIONS.c.state == state)
        if id is not None:
            query = query.where(EVALUATIONS.c.id == id)
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def evaluation(self, id: int) -> dict[str, Any]:
        """One evaluation with its result.  Unknown: NotFound."""
        for row in self.evaluations(id=id):
            return row
        raise NotFound(f"no evaluation {id}")

    def leaderboard(
        self, code: str, weights: Mapping[str, float] | None = None, datasets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Every model's metrics averaged over the data sets (all, or those named), best Dynascore first.

        `weights`: of the Dynascore, those of the task where None.  A model that lacks a weighted metric on a data set
        has no Dynascore and the reason instead; the others are compared without it.
        """
        task = self.task(code)
        weights = dict(task.default_weights) if weights is None else dict(weights)
        known = [row["name"] for row in self.datasets(code)]
        for name in datasets:
            if name not in known:
                raise NotFound(f"no data set {name!r}")
        names = [name for name in known if not datasets or name in datasets]
        found = _values(self.evaluations(code, "done"))
        rows = [self._row(task, model["name"], model["kind"], names, found, weights) for model in self.models(code)]
        complete = [row for row in rows if not row["missing"]]
        refusal = None
        try:
            scores = dynascore(
                [row["metrics"] for row in complete],
                task.perf_metric,
                weights,
                {name: meta_of(name) for name in task.metrics},
            )
        except NotComputable as error:
            refusal, scores = str(error), [None] * len(complete)
        for row, score in zip(complete, scores, strict=True):
            row["dynascore"] = score
        rows.sort(key=lambda row: _order(row, task))
        return {
            "task": code,
            "perf_metric": task.perf_metric,
            "datasets": names,
            "weights": {name: weights.get(name, 0.0) for name in task.metrics},
            "metrics": {name: asdict(meta_of(name)) for name in task.metrics},
            "refusal": refusal,
            "rows": rows,
        }

    def _row(
        self,
        task: Task,
        model: str,
        kind: str,
        datasets: Sequence[str],
        found: Mapping[tuple[str, str], Mapping[str, float]],
        weights: Mapping[str, float],
    ) -> dict[str, Any]:
        """The mean over data sets of each metric that all of them have."""
        on_each = [found.get((model, name), {}) for name in datasets]
        means = {
            metric: sum(values[metric] for values in on_each) / len(on_each)
            for metric in task.metrics
            if on_each and all(metric in values for values in on_each)
        }
        needed = (task.perf_metric, *(name for name, weight in weights.items() if weight))
        missing = [name for name in dict.fromkeys(needed) if name not in means]
        return {"model": model, "kind": kind, "metrics": means, "missing": missing, "dynascore": None}

    def export(self, code: str) -> dict[str, Any]:
        """Everything known about a task, as plain values."""
        return {
            "task": code,
            "datasets": self.datasets(code),
            "models": self.models(code),
            "evaluations": self.evaluations(code),
            "leaderboard": self.leaderboard(code),
        }


def _values(done: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, float]]:
    """(model, data set) -> metric -> value, from the results of all prefixes."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in done:
        values = found.setdefault((row["model"], row["dataset"]), {})
        if row["prefix"]:
            values[row["prefix"]] = row["result"][row["prefix"]]
        else:
            metadata = json.loads(row["result"]["metadata_json"])
            values |= {name: value for name, value in metadata.items() if isinstance(value, int | float)}
            values |= row["result"]["job"]
    return found


def _order(row: Mapping[str, Any], task: Task) -> tuple[bool, float, bool, float]:
    """Best Dynascore first, then those without one by performance."""
    score, perf = row["dynascore"], row["metrics"].get(task.perf_metric)
    direction = meta_of(task.perf_metric).utility_direction
    return (score is None, -(score or 0.0), perf is None, -direction * (perf or 0.0))
