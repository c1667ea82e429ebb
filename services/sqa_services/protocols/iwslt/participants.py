"""Participants of an evaluation: each has a token and one session, which it can neither leave nor reset."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from pathlib import Path

from sqa.core.errors import ConfigError, DataError
from sqa.files.records import lines

SESSION_ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SHORTEST = 16  # characters of a token


def read_participants(path: Path) -> dict[str, str]:
    """name -> token of a file with a name and a token on each line.  DataError; ConfigError with all problems."""
    participants: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(lines(path), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not SESSION_ID.fullmatch(words[0]) or len(words[1]) < SHORTEST:
            wrong.append(f"{path}:{number}: expected a name (letters, digits, . _ -) and a token of {SHORTEST} or more")
        elif words[0] in participants or words[1] in participants.values():
            wrong.append(f"{path}:{number}: the name or the token is that of another line")
        else:
            participants[words[0]] = words[1]
    if wrong:
        raise ConfigError(wrong)
    if not participants:
        raise DataError(f"{path}: no participants in it")
    return participants


def participant_of(token: bytes, participants: Mapping[str, str]) -> str:
    """The name that a token belongs to, "" for none."""
    match = ""
    for name, participant_token in participants.items():  # all of them: constant time
        if hmac.compare_digest(token, participant_token.encode()):
            match = name
    return match
