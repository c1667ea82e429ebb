"""Which tossup trains what: by a hash of its id, so that adding tossups moves none.

guesser   85 %   trains guessers
buzzer    10 %   trains buzzers, on the guesses of guessers that never saw it
dev        5 %   stops training and sets thresholds
"""

from __future__ import annotations

import hashlib
from typing import Literal

Fold = Literal["guesser", "buzzer", "dev"]
Half = Literal["first", "second"]


def fold_of(tossup_id: str) -> Fold:
    """The fold of a tossup."""
    share = int.from_bytes(hashlib.sha256(tossup_id.encode()).digest()[:4], "big") / 2**32  # uniform in [0, 1)
    return "guesser" if share < 0.85 else "buzzer" if share < 0.95 else "dev"


def half_of(tossup_id: str) -> Half:
    """The half of its fold: a fusion of guessers learns from the first, its buzzers from the second."""
    return "first" if hashlib.sha256(f"half {tossup_id}".encode()).digest()[0] < 128 else "second"
