"""The one rule for "is this answer right".

An answer is a Wikipedia page title.  Two titles are the same answer if they are equal after: Unicode NFC, underscores
to blanks, white space collapsed, letter case ignored.  Nothing else is forgiven: "Paris (mythology)" is not "Paris",
"Exoplanets" is not "Exoplanet", an empty title answers nothing.

(The code published with QANTA compares the strings as they are; later code of the same authors also drops blanks,
underscores and hyphens and accepts substrings, by which "a" answers "Alaska".  Neither is done here.)

A config may ask for a second, more generous rule beside it: what a Quizbowl moderator takes, sqa/core/quizbowl.py.  A
listener's own question (`asked` of a Question) is judged by that rule alone.
"""

import functools
import unicodedata
from collections.abc import Mapping
from typing import Literal


def canonical(page: str) -> str:
    """The title in NFC, blanks for underscores, white space collapsed. Keeps the letter case."""
    return " ".join(unicodedata.normalize("NFC", page).replace("_", " ").split())


LINE_ENDS = "\u2028\u2029"  # besides control characters: an id that holds one would tear a table


def unwritable(text: str, also: str = "") -> str:
    """The first control character of a title or an id, or one of `also`, escaped; "" where there is none."""
    return next((ascii(c)[1:-1] for c in text if unicodedata.category(c) == "Cc" or c in also), "")


@functools.lru_cache(maxsize=1 << 16)
def key(page: str) -> str:
    """`canonical` without letter case: equal for two titles of the same answer. Idempotent."""
    return unicodedata.normalize("NFC", canonical(page).casefold())


def resolve(page: str, aliases: Mapping[str, str]) -> str:
    """The canonical title, after a data set's own table of other spellings (spelling -> title), one step."""
    by_key = {key(spelling): title for spelling, title in aliases.items()}
    return canonical(by_key.get(key(page), page))


def is_right(guess_page: str, question_page: str) -> bool:
    """True if the guessed page is the question's page."""
    return key(guess_page) == key(question_page) != ""


STROKES = str.maketrans("łŁøØđĐ", "lLoOdD")  # letters that Unicode does not take apart


def unmarked(text: str, form: Literal["NFD", "NFKD"] = "NFKD") -> str:
    """A text taken apart by a normal form of Unicode, without accents and other marks: "año" -> "ano"."""
    return "".join(c for c in unicodedata.normalize(form, text) if not unicodedata.combining(c))
