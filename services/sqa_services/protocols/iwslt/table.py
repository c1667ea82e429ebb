"""The sessions of a server: lookup by name, and ownership.

A participant of an evaluation has a token and exactly one session, which it can neither leave nor reset.
"""

import hmac
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sqa.core.errors import ConfigError, DataError
from sqa.files.records import lines
from sqa_services.net.address import SHORTEST
from sqa_services.net.guard import Refused
from sqa_services.protocols.iwslt.session import Session

SESSION_ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_SESSIONS = 1024  # maximum number of sessions


class Sessions:
    """Sessions by name; "" is the session of requests without a name."""

    def __init__(self, build: Callable[[], Session]) -> None:
        """Keep sessions that `build` creates."""
        self._build = build
        self._known: dict[str, Session] = {}

    def get(self, name: str, keep: bool = True) -> Session:
        """Return the session of a name; create one if there is room, else refuse (503).

        `keep`: whether a new session is kept.
        """
        session = self._known.get(name)
        if session is None:
            session = self._build()
            if not keep:
                return session
            if len(self._known) >= MAX_SESSIONS:  # empty sessions make room
                self._known = {known: other for known, other in self._known.items() if other.sentences}
            if len(self._known) >= MAX_SESSIONS:
                raise Refused(503)
            self._known[name] = session
        return session

    def forget(self, name: str) -> None:
        """End a session if it exists."""
        self._known.pop(name, None)


def read_participants(path: Path) -> dict[str, str]:
    """Read a file with a name and a token on each line, and return the tokens by name.

    Raises ConfigError with all problems, and DataError if the file has no participants.
    """
    participants: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(lines(path), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not SESSION_ID.fullmatch(words[0]) or len(words[1]) < SHORTEST:
            wrong.append(f"{path}:{number}: expected a name (letters, digits, . _ -) and a token of {SHORTEST} or more")
        elif words[0] in participants or words[1] in participants.values():
            wrong.append(f"{path}:{number}: the name or the token occurs on an earlier line")
        else:
            participants[words[0]] = words[1]
    if wrong:
        raise ConfigError(wrong)
    if not participants:
        raise DataError(f"{path}: contains no participants")
    return participants


def participant_of(token: bytes, participants: Mapping[str, str]) -> str:
    """Return the name that a token belongs to, or "" for none; all tokens are compared, in constant time."""
    return "".join(name for name, other in participants.items() if hmac.compare_digest(token, other.encode()))
