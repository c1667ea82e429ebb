"""`policy: local-agreement, n: 2`: the common prefix of 2 translations (Liu et al. 2020, Polák et al. 2022)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from smt.policies.shown import Words, agreed, append


@dataclass(frozen=True, slots=True)
class LocalAgreement:
    """LA-n: the longest common prefix of the last n translations."""

    counts: ClassVar[str] = "successive translations that must agree"
    least: ClassVar[int] = 2
    usual: ClassVar[int | None] = 2

    n: Annotated[int, "translations that must agree, >= 2"]
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        if ended:
            return append(shown, translations[-1])
        return append(shown, agreed(translations[-self.n :])) if len(translations) >= self.n else shown
