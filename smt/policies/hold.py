"""`policy: hold, n: 3`: the newest translation without its last 3 words (Liu et al. 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from smt.policies.shown import Words, append, without_last


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold-n: the newest translation without its last n words."""

    counts: ClassVar[str] = "words held back"
    least: ClassVar[int] = 0
    usual: ClassVar[int | None] = None

    n: Annotated[int, "words held back, >= 0"]
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return append(shown, translations[-1] if ended else without_last(translations[-1], self.n))
