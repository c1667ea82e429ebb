"""The default rule for right answers.

An answer is a Wikipedia page title.  Two titles are the same answer if they are equal in Unicode NFC, with
underscores replaced by spaces, white space collapsed and letter case ignored.  All other differences count: "Paris
(mythology)" is not "Paris", "Exoplanets" is not "Exoplanet", and an empty title matches nothing.

(The code published with QANTA compares the strings unchanged.  Later code of the same authors also removes spaces,
underscores and hyphens and accepts substrings, so that "a" is a right answer to "Alaska".  This module does neither.)

A config may additionally request a second, more generous rule, that of Quizbowl (sqa/core/quizbowl.py).  Answers to
a listener's question (`Question.asked`) are judged only by that rule.
"""

import functools
import unicodedata
from typing import Literal


def canonical(page: str) -> str:
    """Return the title in NFC, with spaces for underscores and white space collapsed.  Letter case is kept."""
    return " ".join(unicodedata.normalize("NFC", page).replace("_", " ").split())


LINE_ENDS = "\u2028\u2029"  # line separators, which would break table rows if an id contained them


def unwritable(text: str, also: str = "") -> str:
    """Return the first character of a text that is a control character or in `also`, escaped; "" if there is none."""
    return next((ascii(c)[1:-1] for c in text if unicodedata.category(c) == "Cc" or c in also), "")


@functools.lru_cache(maxsize=1 << 16)
def key(page: str) -> str:
    """Return the case-folded canonical title, which is equal for all titles of the same answer.  Idempotent."""
    return unicodedata.normalize("NFC", canonical(page).casefold())


def is_right(guess_page: str, question_page: str) -> bool:
    """Return whether the guessed page is the question's page."""
    return key(guess_page) == key(question_page) != ""


STROKES = str.maketrans("łŁøØđĐ", "lLoOdD")  # letters that Unicode does not decompose


def unmarked(text: str, form: Literal["NFD", "NFKD"] = "NFKD") -> str:
    """Decompose a text by a Unicode normal form and remove accents and other combining marks: "año" -> "ano"."""
    return "".join(c for c in unicodedata.normalize(form, text) if not unicodedata.combining(c))
