"""Accounts by invitation, their tokens and their daily quota.

The board stores only the SHA-256 of tokens and invitations.  Both have 192 random bits.
"""

import hashlib
import secrets
import time
from typing import Any

from sqlalchemy import Engine, ScalarSelect, case, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from sqa.core.errors import ConfigError, SqaError
from sqa_services.board.permissions import Caller, Denied
from sqa_services.board.storage import ACCOUNTS, INVITATIONS
from sqa_services.board.task import check_name

DAY = 86_400.0
MOST_USES = 10_000


class Taken(ConfigError):
    """Raised for a name that is already in use."""


class TooMany(SqaError):
    """Raised for a submission beyond the daily quota."""


def invite(engine: Engine, uses: int = 1, days: float = 30.0) -> dict[str, Any]:
    """Create an invitation with which one person can sign up for `uses` accounts within `days` days.

    Returns {"invitation", "uses", "until"}.
    """
    if not 1 <= uses <= MOST_USES or not 0 < days <= 3660:
        limits = f"uses must be 1 to {MOST_USES}, and days above 0 and at most 3660"
        raise ConfigError(f"invitation: {limits}; got {uses} and {days:g}")
    code, now = secrets.token_urlsafe(24), time.time()
    row = {"code": _digest(code.encode()), "created": now, "until": now + days * DAY, "uses": uses}
    with engine.begin() as connection:
        connection.execute(insert(INVITATIONS).values(**row))
    return {"invitation": code, "uses": uses, "until": row["until"]}


def sign_up(engine: Engine, name: str, invitation: str) -> dict[str, Any]:
    """Create an account and return {"name", "token"}.

    Raises Denied if the invitation is invalid, and Taken if the name is in use.
    """
    check_name(name, "account")
    token, now = secrets.token_urlsafe(24), time.time()
    valid = (INVITATIONS.c.uses > 0, INVITATIONS.c.until > now)
    with engine.begin() as connection:  # an exception rolls back the use of the invitation
        used = connection.execute(
            update(INVITATIONS)
            .where(INVITATIONS.c.code == _digest(invitation.encode(errors="replace")), *valid)
            .values(uses=INVITATIONS.c.uses - 1)
            .returning(INVITATIONS.c.id)
        ).first()
        if used is None:
            raise Denied("invitation: unknown, used up or expired; ask the organiser for another")
        try:
            row = {"name": name, "token": _digest(token.encode()), "created": now, "invitation": used.id}
            connection.execute(insert(ACCOUNTS).values(**row))
        except IntegrityError as error:
            raise Taken(f"account: the name {name!r} is already in use; choose another") from error
    return {"name": name, "token": token}


def account_of(engine: Engine, token: bytes) -> Caller | None:
    """Return the account of a token, or None if no account has it."""
    query = select(ACCOUNTS.c.id, ACCOUNTS.c.name).where(ACCOUNTS.c.token == _digest(token))
    with engine.connect() as connection:
        row = connection.execute(query).first()
    return None if row is None else Caller(*row)


def spend(engine: Engine, caller: Caller, per_day: int) -> None:
    """Count a submission against the caller's quota for today (UTC), even if the submission is refused later.

    Raises TooMany if `per_day` submissions are counted already.  The accounts of one invitation belong to one person
    and share the quota.  A single statement checks and increments, so that simultaneous requests cannot exceed it.
    """
    if caller.organiser:
        return
    today = int(time.time() // DAY)
    counted = (
        update(ACCOUNTS)
        .where(ACCOUNTS.c.id == person_of(caller.account))
        .where(or_(ACCOUNTS.c.day != today, ACCOUNTS.c.sent < per_day))
        .values(day=today, sent=case((ACCOUNTS.c.day == today, ACCOUNTS.c.sent + 1), else_=1))
    )
    with engine.begin() as connection:
        if connection.execute(counted).rowcount == 0:
            raise TooMany(
                f"{caller.name}: today's {per_day} submissions are used up, including refused ones and those of other "
                "accounts of the same invitation; come back tomorrow (UTC)"
            )


def person_of(account: int | None) -> ScalarSelect[int]:
    """Return a subquery for the first account with the same invitation, which identifies the person."""
    first, own = ACCOUNTS.alias(), ACCOUNTS.alias()
    invitation = select(own.c.invitation).where(own.c.id == account).scalar_subquery()
    return select(func.min(first.c.id)).where(first.c.invitation == invitation).scalar_subquery()


def _digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()
