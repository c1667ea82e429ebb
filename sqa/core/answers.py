"""The one rule for "is this answer right".

An answer is a Wikipedia page title.  Two titles are the same answer if they are equal after: Unicode NFC, underscores
to blanks, white space collapsed, letter case ignored.  Nothing else is forgiven: "Paris (mythology)" is not "Paris",
"Exoplanets" is not "Exoplanet", an empty title is nobody's answer.

(The code published with QANTA compares the strings as they are; later code of the same authors also drops blanks,
underscores and hyphens and accepts substrings, by which "a" answers "Alaska".  Neither is done here.)
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping

NO_ALIASES: Mapping[str, str] = {}


def canonical(page: str) -> str:
    """The title as it is written: NFC, blanks for underscores, white space collapsed. Keeps the letter case."""
    return " ".join(unicodedata.normalize("NFC", page).replace("_", " ").split())


@functools.lru_cache(maxsize=1 << 16)
def key(page: str) -> str:
    """What two titles of the same answer have in common: `canonical` without letter case. Idempotent."""
    return unicodedata.normalize("NFC", canonical(page).casefold())


def resolve(page: str, aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """The canonical title, after the data set's own table of other spellings (spelling -> title), one step."""
    if not aliases:
        return canonical(page)
    by_key = {key(spelling): title for spelling, title in aliases.items()}
    return canonical(by_key.get(key(page), page))


def is_right(guess_page: str, question_page: str, aliases: Mapping[str, str] = NO_ALIASES) -> bool:
    """True if the guessed page is the question's page."""
    wanted = key(resolve(question_page, aliases))
    return bool(wanted) and key(resolve(guess_page, aliases)) == wanted
