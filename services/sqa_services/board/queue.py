"""The queue of evaluations in the database, with leases.

A worker claims an evaluation with one UPDATE that gives it a lease, and renews the lease while it works.  The lease of
a killed worker expires, and another worker can claim the evaluation.  To finish, the worker writes result and state in
one statement, which changes nothing if its lease is lost.  So each result is written once.
"""

import json
import secrets
import sqlite3
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqa_services.board.storage import Database

MAX_ATTEMPTS = 20  # number of workers that an evaluation may crash before it fails
# the state of the evaluation of the same model on the unperturbed data
ORIGINAL = "(SELECT o.state FROM evaluations o WHERE o.model = e.model AND o.dataset = e.dataset AND o.prefix = '')"


class Claim(NamedTuple):
    """An evaluation leased to this worker."""

    id: int
    model: Mapping[str, Any]  # its row
    dataset: Mapping[str, Any]
    prefix: str
    lease: str


def fill(db: sqlite3.Connection) -> int:
    """Queue the missing evaluations of all models on the data sets of their task, and return their number."""
    query = """
        INSERT OR IGNORE INTO evaluations (model, dataset, prefix, queued)
        SELECT m.id, d.id, p.value, ? FROM datasets d JOIN models m USING (task)
        JOIN json_each(json_insert(d.prefixes, '$[#]', '')) p
        ORDER BY d.id, m.id, p.value <> '', p.key"""
    return db.execute(query, (time.time(),)).rowcount


def claim(database: Database, lease_seconds: float) -> Claim | None:
    """Lease the next evaluation to the caller; return None if the queue is empty.

    An evaluation on perturbed data waits for the evaluation on the original data, and fails if that one failed.  Any
    evaluation fails after MAX_ATTEMPTS workers have died.
    """
    now = time.time()
    died = f"the worker died {MAX_ATTEMPTS} times; see its output"
    with database.writing() as db:
        db.execute(
            """UPDATE evaluations SET state = 'failed', lease = NULL, lease_until = NULL, error = COALESCE(error, ?)
            WHERE state = 'running' AND lease_until < ? AND attempts >= ?""",
            (died, now, MAX_ATTEMPTS),
        )
        db.execute(
            f"""UPDATE evaluations AS e SET state = 'failed', error = 'the evaluation on the original data failed'
            WHERE state = 'queued' AND prefix <> '' AND {ORIGINAL} = 'failed'"""
        )
        row: dict[str, Any] | None = db.execute(
            f"""UPDATE evaluations SET state = 'running', lease = ?, lease_until = ?, attempts = attempts + 1,
            started = ? WHERE id = (
                SELECT e.id FROM evaluations e
                WHERE (e.state = 'queued' OR (e.state = 'running' AND e.lease_until < ?))
                AND (e.prefix = '' OR {ORIGINAL} = 'done') AND e.attempts < ?
                ORDER BY e.prefix <> '', e.id LIMIT 1)
            RETURNING id, model, dataset, prefix, lease""",
            (secrets.token_hex(16), now + lease_seconds, now, now, MAX_ATTEMPTS),
        ).fetchone()
        if row is None:
            return None
        [model] = db.execute("SELECT * FROM models WHERE id = ?", (row["model"],))
        [dataset] = db.execute("SELECT * FROM datasets WHERE id = ?", (row["dataset"],))
    return Claim(**row | {"model": model, "dataset": dataset})


def renew(database: Database, claimed: Claim, lease_seconds: float) -> bool:
    """Extend a lease; return False if it is lost."""
    with database.writing() as db:
        return _update(db, claimed, lease_until=time.time() + lease_seconds)


def finish(database: Database, claimed: Claim, result: Mapping[str, Any]) -> bool:
    """Write the result; return False, without writing, if the lease is lost."""
    return _end(database, claimed, state="done", error=None, result=json.dumps(result))


def fail(database: Database, claimed: Claim, error: str) -> bool:
    """Mark an evaluation as failed for a permanent reason; return False, without writing, if the lease is lost."""
    readable = error.replace("\x00", "\ufffd").encode(errors="replace").decode()
    return _end(database, claimed, state="failed", error=readable)


def _end(database: Database, claimed: Claim, **values: Any) -> bool:
    with database.writing() as db:
        return _update(db, claimed, **values, lease=None, lease_until=None, finished=time.time())


def _update(db: sqlite3.Connection, claimed: Claim, **values: Any) -> bool:
    """Change the columns of a leased evaluation; return False if the lease is lost."""
    columns = ", ".join(f"{name} = ?" for name in values)
    query = f"UPDATE evaluations SET {columns} WHERE id = ? AND lease = ? AND state = 'running'"
    return db.execute(query, (*values.values(), claimed.id, claimed.lease)).rowcount == 1


def to_do(database: Database) -> dict[str, int]:
    """Return the numbers of running and queued evaluations; one whose worker died counts as queued."""
    query = """
        SELECT COUNT(*) AS open, COUNT(*) FILTER (WHERE state = 'running' AND lease_until >= ?) AS running
        FROM evaluations WHERE state IN ('queued', 'running')"""
    [counted] = database.rows(query, time.time())
    return {"running": counted["running"], "queued": counted["open"] - counted["running"]}
