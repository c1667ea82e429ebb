"""`policy: wait-k, k: 6`: one word after each source word from the 6th on (Ma et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smt.policies.shown import Words, append


@dataclass(frozen=True, slots=True)
class WaitK:
    """Prefix wait-k: one more word of the newest translation (none where it has no more) after each read from k on."""

    k: int  # source words, >= 1; FULL = all of them

    @property
    def start(self) -> int:
        return self.k

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        newest = translations[-1]
        return append(shown, newest if ended else newest[: len(shown) + 1])
