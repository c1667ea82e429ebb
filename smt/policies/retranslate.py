"""`policy: retranslate, n: 0`: the newest translation without its last n words, replacing the previous one.

Niehues et al. 2018; n is the mask-k of Arivazhagan et al. 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from smt.policies.shown import Words, without_last


@dataclass(frozen=True, slots=True)
class Retranslate:
    """Re-translation: the newest translation replaces the previous one."""

    counts: ClassVar[str] = "words held back"
    least: ClassVar[int] = 0
    usual: ClassVar[int | None] = 0

    n: Annotated[int, "number of last words that are hidden until the sentence has ended, >= 0"] = 0
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return translations[-1] if ended else without_last(translations[-1], self.n)
