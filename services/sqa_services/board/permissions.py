"""Permissions: owners change everything, submitters upload submissions, up to a daily limit."""

import time
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects import postgresql, sqlite

from sqa.core.errors import ConfigError, SqaError
from sqa_services.board.storage import DAYS

DAY = 86_400
OWNER, SUBMITTER = "owner", "submitter"  # holders of the two tokens
INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class Denied(SqaError):
    """Raised for an action that needs the owners' token."""


class Taken(ConfigError):
    """Raised for a name that is already in use."""


class TooMany(SqaError):
    """Raised for a submission beyond the daily limit."""


def spend(engine: Engine, caller: str, per_day: int) -> None:
    """Count a submission against the submitters' limit for today (UTC), even if the submission is refused later.

    Raises TooMany if `per_day` submissions are counted already.  Owners have no limit.  A single statement checks and
    increments, so that simultaneous requests cannot exceed the limit.
    """
    if caller == OWNER:
        return
    first = INSERT[engine.dialect.name](DAYS).values(day=int(time.time() // DAY), sent=1)
    counted = first.on_conflict_do_update(
        index_elements=["day"], set_={"sent": DAYS.c.sent + 1}, where=DAYS.c.sent < per_day
    )
    with engine.begin() as connection:
        if connection.execute(counted.returning(DAYS.c.sent)).first() is None:
            raise TooMany(f"today's {per_day} submissions are used up, also by refused ones; try again tomorrow")
