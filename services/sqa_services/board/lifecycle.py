"""Actions on a registered model: log, requeueing and deletion."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, select, update

from sqa_services.board.files import Files, model_path, predictions_path
from sqa_services.board.storage import DATASETS, DETAILS, EVALUATIONS, EVENTS, MODELS, SCORES
from sqa_services.board.task import NotFound

E = EVALUATIONS.c


def find_model(connection: Connection, code: str, name: str) -> dict[str, Any]:
    """Return a model's row.  Raises NotFound if the model is unknown."""
    row = connection.execute(select(MODELS).where(MODELS.c.task == code, MODELS.c.name == name)).mappings().first()
    if row is None:
        raise NotFound(f"no model {name!r}")
    return dict(row)


def note(connection: Connection, model: int, text: str) -> None:
    """Add a line to a model's log."""
    connection.execute(insert(EVENTS).values(model=model, time=time.time(), text=text))


def log_of(engine: Engine, code: str, name: str) -> list[dict[str, Any]]:
    """Return a model's log as a list of {"time", "text"}, oldest first.  Raises NotFound if the model is unknown."""
    with engine.connect() as connection:
        id = find_model(connection, code, name)["id"]
        query = select(EVENTS.c.time, EVENTS.c.text).where(EVENTS.c.model == id).order_by(EVENTS.c.id)
        return [dict(row) for row in connection.execute(query).mappings()]


def requeue(engine: Engine, code: str, name: str) -> int:
    """Queue a model's failed evaluations again, and return their number."""
    with _own(engine, code, name) as (connection, model):
        number = _again(connection, model)
        note(connection, model["id"], f"{number} failed evaluations queued again")
    return number


def remove(engine: Engine, files: Files, code: str, name: str) -> None:
    """Delete a model, its scores, its log and its files, and free its name."""
    with _own(engine, code, name) as (connection, model):
        rows = connection.execute(
            select(E.id, E.prefix, DATASETS.c.name)
            .join(DATASETS, DATASETS.c.id == E.dataset)
            .where(E.model == model["id"])
            .with_for_update(of=EVALUATIONS)
        ).all()
        for table in (DETAILS, SCORES):
            connection.execute(delete(table).where(table.c.evaluation.in_([id for id, _, _ in rows])))
        for column in (E.model, EVENTS.c.model, MODELS.c.id):
            connection.execute(delete(column.table).where(column == model["id"]))
        for _, prefix, dataset in rows:
            files.remove(predictions_path(code, name, dataset, prefix))
        files.remove(model_path(code, name, model["kind"]))


@contextmanager
def _own(engine: Engine, code: str, name: str) -> Iterator[tuple[Connection, dict[str, Any]]]:
    """Open a transaction on a model.  Raises NotFound if the model is unknown."""
    with engine.begin() as connection:
        model = find_model(connection, code, name)
        yield connection, model


def _again(connection: Connection, model: Mapping[str, Any]) -> int:
    again = {"state": "queued", "attempts": 0, "error": None, "queued": time.time(), "started": None, "finished": None}
    failed = (E.model == model["id"], E.state == "failed")
    return connection.execute(update(EVALUATIONS).where(*failed).values(**again)).rowcount
