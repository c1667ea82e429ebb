"""The queue of evaluations in the database, with leases.

A worker claims an evaluation with one UPDATE that gives it a lease, and renews the lease while it works.  The lease of
a killed worker expires, and another worker can claim the evaluation.  To finish, the worker writes the score and the
new state in one transaction, which fails if its lease is lost.  So each score is written once.
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, and_, case, func, insert, or_, select, update

from sqa_services.board.lifecycle import note
from sqa_services.board.permissions import INSERT
from sqa_services.board.storage import DATASETS, DETAILS, EVALUATIONS, MODELS, SCORES

MAX_ATTEMPTS = 20  # number of workers that an evaluation may crash before it fails
E = EVALUATIONS.c
ORIGINAL = EVALUATIONS.alias()  # evaluation of the same model on the unperturbed data
RELEASED = {"lease": None, "lease_until": None}


@dataclass(frozen=True, slots=True)
class Claim:
    """An evaluation leased to this worker."""

    id: int
    model: int
    dataset: int
    prefix: str
    lease: str


def _original(state: str) -> ColumnElement[bool]:
    """Return the SQL condition that a model's evaluation on the original data is in a state."""
    same = (ORIGINAL.c.model == E.model, ORIGINAL.c.dataset == E.dataset, ORIGINAL.c.prefix == "")
    return select(ORIGINAL.c.id).where(*same, ORIGINAL.c.state == state).correlate_except(ORIGINAL).exists()


def fill(connection: Connection) -> int:
    """Queue the missing evaluations of all models on the data sets of their task, and return their number."""
    of_pair = (E.model == MODELS.c.id, E.dataset == DATASETS.c.id)
    present = select(func.count()).select_from(EVALUATIONS).where(*of_pair).scalar_subquery()
    pairs = connection.execute(
        select(MODELS.c.id, DATASETS.c.id, DATASETS.c.prefixes, present)
        .join(DATASETS, DATASETS.c.task == MODELS.c.task)
        .where(present <= func.json_array_length(DATASETS.c.prefixes))
        .order_by(DATASETS.c.id, MODELS.c.id)
    )
    new = {"state": "queued", "attempts": 0, "queued": time.time()}
    rows = [
        {"model": model, "dataset": dataset, "prefix": prefix, **new}
        for model, dataset, prefixes, number in pairs
        for prefix in ("", *prefixes)[number:]  # a data set's prefixes are queued in order
    ]
    if rows:  # another worker may be queueing the same pairs
        connection.execute(INSERT[connection.dialect.name](EVALUATIONS).on_conflict_do_nothing(), rows)
    return len(rows)


def claim(engine: Engine, lease_seconds: float) -> Claim | None:
    """Lease the next evaluation to the caller; return None if the queue is empty.

    An evaluation on perturbed data waits for the evaluation on the original data, and fails if that one failed.  Any
    evaluation fails after MAX_ATTEMPTS workers have died.
    """
    now, lease = time.time(), secrets.token_hex(16)
    free = or_(E.state == "queued", and_(E.state == "running", E.lease_until < now))
    next_one = (
        select(E.id)
        .where(free, or_(E.prefix == "", _original("done")), E.attempts < MAX_ATTEMPTS)
        .order_by(case((E.prefix == "", 0), else_=1), E.id)
        .limit(1)
        .with_for_update(skip_locked=True)  # PostgreSQL; SQLite has one writer at a time anyway
        .scalar_subquery()
    )
    with engine.begin() as connection:
        _give_up(connection, now)
        row = connection.execute(
            update(EVALUATIONS)
            .where(E.id == next_one, free)
            .values(state="running", lease=lease, lease_until=now + lease_seconds, attempts=E.attempts + 1, started=now)
            .returning(E.id, E.model, E.dataset, E.prefix, E.lease)
        ).one_or_none()
    return None if row is None else Claim(*row)


def _give_up(connection: Connection, now: float) -> None:
    died = f"the worker died {MAX_ATTEMPTS} times; see its output"
    connection.execute(
        update(EVALUATIONS)
        .where(E.state == "running", E.lease_until < now, E.attempts >= MAX_ATTEMPTS)
        .values(state="failed", **RELEASED, error=func.coalesce(E.error, died))
    )
    connection.execute(
        update(EVALUATIONS)
        .where(E.state == "queued", E.prefix != "", _original("failed"))
        .values(state="failed", error="the evaluation on the original data failed")
    )


def renew(engine: Engine, claimed: Claim, lease_seconds: float) -> bool:
    """Extend a lease; return False if it is lost."""
    with engine.begin() as connection:
        return _mine(connection, claimed, {"lease_until": time.time() + lease_seconds})


def finish(
    engine: Engine, claimed: Claim, result: Mapping[str, Any], details: list[list[float]] | None = None, event: str = ""
) -> bool:
    """Write the score; return False, without writing, if the lease is lost.

    Args:
        details: Statistics of each example.
        event: Line for the model's log.
    """
    done = {"state": "done", **RELEASED, "error": None, "finished": time.time()}
    with engine.begin() as connection:
        if not _mine(connection, claimed, done):
            return False
        connection.execute(insert(SCORES).values(evaluation=claimed.id, result=dict(result)))
        if details is not None:
            connection.execute(insert(DETAILS).values(evaluation=claimed.id, stats=details))
        if event:
            note(connection, claimed.model, event)
        return True


def fail(engine: Engine, claimed: Claim, error: str, event: str = "") -> bool:
    """Mark an evaluation as failed for a permanent reason; `event` and the reason go into the model's log."""
    readable = error.replace("\x00", "\ufffd").encode(errors="replace").decode()
    failed = {"state": "failed", **RELEASED, "error": readable, "finished": time.time()}
    with engine.begin() as connection:
        held = _mine(connection, claimed, failed)
        if held and event:
            note(connection, claimed.model, f"{event}: {readable}")
        return held


def _mine(connection: Connection, claimed: Claim, values: Mapping[str, Any]) -> bool:
    held = (E.id == claimed.id, E.lease == claimed.lease, E.state == "running")
    return connection.execute(update(EVALUATIONS).where(*held).values(**values)).rowcount == 1


def to_do(engine: Engine) -> dict[str, int]:
    """Return the numbers of "running" and of "queued" evaluations; a dead worker's evaluations are queued."""
    running = and_(E.state == "running", E.lease_until >= time.time())
    query = select(func.count(), func.count().filter(running)).where(E.state.in_(("queued", "running")))
    with engine.connect() as connection:
        everything, begun = connection.execute(query).one()
    return {"running": begun, "queued": everything - begun}
