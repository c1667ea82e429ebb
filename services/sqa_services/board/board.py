"""The board: registered data sets and models, results and the leaderboard, in a database and a folder.

board = Board(BoardConfig(Path("board")))
board.register_dataset("sqa-es", "xqb", "xqb-es", perturbations=["typos"])
board.register_model("sqa-es", "wait-6", "config", Path("configs/xqb_es_wait6_bm25.yaml").read_bytes())
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from sqlalchemy import Engine, Select, Table, insert, select, update
from sqlalchemy.exc import IntegrityError

from sqa.core.errors import ConfigError
from sqa.core.registry import did_you_mean
from sqa_services.board import lifecycle, queue, rank
from sqa_services.board.files import Files, as_lines, data_path, make_private, model_path, split_prefix
from sqa_services.board.permissions import Taken
from sqa_services.board.rank import parse_weights
from sqa_services.board.storage import (
    DATASETS,
    DETAILS,
    EVALUATIONS,
    MODELS,
    SCORES,
    open_engine,
)
from sqa_services.board.task import KINDS, Example, NotFound, Task, Unscorable, check_name, load_tasks

Row = dict[str, Any]
SHOWN_COLUMNS = ("prefix", "state", "attempts", "error", "queued", "started", "finished")  # columns of an evaluation


@dataclass(frozen=True, slots=True)
class BoardConfig:
    """Storage of a board, and its additional tasks."""

    folder: Path = Path("board")
    db: Annotated[str | None, "database URL; None = SQLite in <folder>/board.sqlite"] = None
    files: Annotated[str | None, "fsspec URL; None = <folder>/files"] = None
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
    files: Files
    engine: Engine
    standings: rank.Standings = field(default_factory=dict, compare=False)

    @classmethod
    def open(cls, config: BoardConfig) -> Board:
        """Open a board, and create its folder and tables if they are missing."""
        make_private(config.work)
        folder, tasks = config.folder.absolute(), load_tasks(config.tasks, config.metrics)
        files = Files(config.files or str(folder / "files"))
        return cls(config, tasks, files, open_engine(config.db or f"sqlite:///{folder / 'board.sqlite'}"))

    def task(self, code: str) -> Task:
        """Return the task with this code.  Raises NotFound if there is none."""
        if code not in self.tasks:
            raise NotFound(f"no task {code!r}{did_you_mean(code, self.tasks)}; known: {', '.join(self.tasks)}")
        return self.tasks[code]

    # -------------------------------------------------------------------------------------------- registration

    def register_dataset(
        self,
        code: str,
        name: str,
        source: str,
        perturbations: Sequence[str] = (),
        seed: int = 0,
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
        return self._add(DATASETS, task, name, row, files)

    def preview(self, code: str, name: str, kinds: Sequence[str], most: int = 3) -> Row:
        """Return what `perturb` would add to a data set, without storing anything.

        Returns a dict that maps each perturbation to its "prefix", the number "n" of changed examples, and at most
        `most` pairs of "examples", the inputs "before" and "after".
        """
        task, originals, copies = self._perturbed(code, name, kinds)
        by_id = {example[task.input_keys[0]]: example for example in originals}
        found: Row = {}
        for prefix, rows in copies.items():
            for copy in rows:
                entry = found.setdefault(copy["transform"], {"prefix": prefix, "n": 0, "examples": []})
                entry["n"] += 1
                if len(entry["examples"]) < most:
                    pair = {"before": task.inputs(by_id[copy["input_id"]]), "after": task.inputs(copy)}
                    entry["examples"].append(pair)
        return found

    def perturb(self, code: str, name: str, kinds: Sequence[str]) -> Row:
        """Add perturbed copies to a data set and queue every model on them.

        The copies equal those that `register_dataset` would have stored.  Returns "prefixes", the families added, and
        "queued", the number of evaluations.

        Raises:
            Taken: The data set already has copies of a family.
        """
        _, _, copies = self._perturbed(code, name, kinds)
        with self.engine.begin() as connection:
            this = (DATASETS.c.task == code, DATASETS.c.name == name)
            connection.execute(update(DATASETS).where(*this).values(name=name))  # lock the row before reading it
            present = connection.execute(select(DATASETS.c.prefixes).where(*this)).scalar_one()
            if both := [prefix for prefix in copies if prefix in present]:
                raise Taken(f"{name}: already has {both[0]} copies, which are immutable; register it under a new name")
            for prefix, rows in copies.items():
                self.files.write(data_path(code, name, prefix), as_lines(rows))
            connection.execute(update(DATASETS).where(*this).values(prefixes=[*present, *copies]))
            return {"prefixes": [*copies], "queued": queue.fill(connection)}

    def _perturbed(self, code: str, name: str, kinds: Sequence[str]) -> tuple[Task, list[Example], dict[str, Any]]:
        """Return the task, the examples of a data set, and their perturbed copies by prefix."""
        task, (row, prefix) = self.task(code), self.dataset(code, name)
        if prefix or not kinds:
            raise ConfigError("perturb: name a data set without a prefix, and at least one kind")
        originals = self.files.read_lines(data_path(code, row["name"]))
        copies = task.perturb(originals, kinds, row["seed"])
        if not copies:
            raise ConfigError(f"perturb: {', '.join(kinds)} changes no example of {name}")
        return task, originals, copies

    def register_model(self, code: str, name: str, kind: str, data: bytes) -> Row:
        """Store a model's file, and queue its evaluation on every data set of the task.

        The key "cannot" of the returned row maps data sets to the reasons why the model will fail there.

        Raises:
            Unscorable: The model would fail on every data set.
        """
        task = self.task(code)
        check_name(name, "model")
        if kind not in KINDS:
            raise ConfigError(f"model: its kind must be one of {', '.join(KINDS)}, got {kind!r}")
        task.check_model(kind, data)
        cannot = self._cannot(task, name, kind, data)
        return self._add(MODELS, task, name, {"kind": kind}, {model_path(code, name, kind): data}) | {"cannot": cannot}

    def _cannot(self, task: Task, name: str, kind: str, data: bytes) -> Mapping[str, list[str]]:
        """Return a dict that maps each data set on which the model will fail to the reasons.

        Raises Unscorable if it fails on every data set.
        """
        sets = [row["name"] for row in self.datasets(task.code)]
        examples = {dataset: self.files.read_lines(data_path(task.code, dataset)) for dataset in sets}
        cannot = task.unscorable(kind, data, examples)
        if sets and len(cannot) == len(sets):
            reasons = [f"{dataset}: {problem}" for dataset, problems in cannot.items() for problem in problems]
            raise Unscorable(f"{name}: cannot be scored on any data set of {task.code}", reasons)
        return cannot

    def require_free(self, code: str, name: str) -> None:
        """Raise Taken if the task has a model of that name."""
        if self._rows(select(MODELS.c.id).where(MODELS.c.task == code, MODELS.c.name == name)):
            raise _taken(MODELS, code, name)

    def _add(self, table: Table, task: Task, name: str, more: Row, files: Mapping[str, bytes]) -> Row:
        """Add a row, write its files and queue its evaluations in one transaction; the row reserves the name."""
        row = {"task": task.code, "name": name, **more, "created": time.time()}
        with self.engine.begin() as connection:
            try:
                [id] = connection.execute(insert(table).values(**row).returning(table.c.id)).one()
            except IntegrityError as error:
                raise _taken(table, task.code, name) from error
            for path, data in files.items():
                self.files.write(path, data)
            queued = queue.fill(connection)
            if table is MODELS:
                lifecycle.note(connection, id, f"registered; evaluations queued: {queued}")
        return {**row, "id": id, "queued": queued}

    # ------------------------------------------------------------------------------------------------- reading

    def _rows(self, query: Select[Any]) -> list[Row]:
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def datasets(self, code: str) -> list[Row]:
        """Return the data sets of a task in the order of registration."""
        self.task(code)
        return self._rows(select(DATASETS).where(DATASETS.c.task == code).order_by(DATASETS.c.id))

    def models(self, code: str) -> list[Row]:
        """Return the models of a task in the order of registration."""
        self.task(code)
        return self._rows(select(MODELS).where(MODELS.c.task == code).order_by(MODELS.c.id))

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
        return self.files.read_lines(data_path(code, row["name"], prefix))

    def evaluations(self, code: str, state: str | None = None) -> list[Row]:
        """Return the evaluations of a task, optionally in one state, in the order of queueing."""
        self.task(code)
        query = (
            select(
                EVALUATIONS.c.id,
                MODELS.c.task,
                MODELS.c.name.label("model"),
                DATASETS.c.name.label("dataset"),
                *(EVALUATIONS.c[name] for name in SHOWN_COLUMNS),
                SCORES.c.result,
            )
            .join(MODELS, MODELS.c.id == EVALUATIONS.c.model)
            .join(DATASETS, DATASETS.c.id == EVALUATIONS.c.dataset)
            .outerjoin(SCORES, SCORES.c.evaluation == EVALUATIONS.c.id)
            .where(MODELS.c.task == code)
            .order_by(EVALUATIONS.c.id)
        )
        if state is not None:
            query = query.where(EVALUATIONS.c.state == state)
        return self._rows(query)

    def leaderboard(
        self,
        code: str,
        weights: Mapping[str, float] | None = None,
        datasets: Sequence[str] = (),
    ) -> Row:
        """Rank the models by Dynascore, best first.

        Metrics are means over data sets.  A model that lacks a weighted metric has no Dynascore.

        Args:
            weights: Weights of the metrics; None uses the task's weights of all metrics that the data sets have.
            datasets: Names of data sets; by default all data sets of the task.

        Raises:
            NotFound: A data set is unknown.
        """
        task = self.task(code)
        registered = {row["name"]: row for row in self.datasets(code)}
        for name in datasets:
            if name not in registered:
                raise NotFound(f"no data set {name!r}")
        used = list(dict.fromkeys(datasets)) or list(registered)
        if weights is None:
            lacking = {
                delta for delta in task.delta_metrics for name in used if delta not in registered[name]["prefixes"]
            }
            weights = {name: weight for name, weight in task.default_weights.items() if name not in lacking}
            weights = weights or {task.perf_metric: 1.0}
        done = self.evaluations(code, "done")
        ranked = rank.rank(task, self.models(code), done, used, weights, self._details, self.standings)
        return {
            "task": code,
            "rank_version": rank.VERSION,
            "perf_metric": task.perf_metric,
            "datasets": used,
            "weights": {name: weights.get(name, 0.0) for name in task.metrics},
            "metrics": rank.about_metrics(task),
            **ranked,
        }

    def metric_weights(self, code: str, text: str | None) -> dict[str, float] | None:
        """Parse weights of a task's metrics such as "ew=4,dal=1"; return None for None."""
        return None if text is None else parse_weights(text, self.task(code).metrics)

    def _details(self, ids: Sequence[int]) -> dict[int, Any]:
        """Return a dict that maps each evaluation id to the statistics of its examples."""
        rows = self._rows(select(DETAILS).where(DETAILS.c.evaluation.in_(ids)))
        return {row["evaluation"]: row["stats"] for row in rows}

    def export(self, code: str) -> Row:
        """Return a task's data sets, models, evaluations and leaderboard."""
        return {
            "task": code,
            "datasets": self.datasets(code),
            "models": self.models(code),
            "evaluations": self.evaluations(code),
            "leaderboard": self.leaderboard(code),
        }


def _taken(table: Table, code: str, name: str) -> Taken:
    return Taken(f"{table.name}: {code} already has {name!r}; registered entries are immutable")
