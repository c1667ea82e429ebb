"""Policies with one number, n, around a system that translates prefixes; see `smt.policies.prefixes`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from smt.policies.policy import Words, agreed, append, without_last


@dataclass(frozen=True, slots=True)
class LocalAgreement:
    """LA-n: the longest common prefix of the last n translations (Liu et al. 2020, Polák et al. 2022)."""

    counts: ClassVar[str] = "successive translations that must agree"
    least: ClassVar[int] = 2
    usual: ClassVar[int | None] = 2

    n: Annotated[int, "translations that must agree, >= 2"]
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        if ended:
            return append(shown, translations[-1])
        return append(shown, agreed(translations[-self.n :])) if len(translations) >= self.n else shown


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold-n: the newest translation without its last n words (Liu et al. 2020)."""

    counts: ClassVar[str] = "words held back"
    least: ClassVar[int] = 0
    usual: ClassVar[int | None] = None

    n: Annotated[int, "words held back, >= 0"]
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return append(shown, translations[-1] if ended else without_last(translations[-1], self.n))


@dataclass(frozen=True, slots=True)
class Retranslate:
    """Re-translation: the newest translation without its last n words replaces the previous one (Niehues et al. 2018).

    n is the mask-k of Arivazhagan et al. 2020.
    """

    counts: ClassVar[str] = "words held back"
    least: ClassVar[int] = 0
    usual: ClassVar[int | None] = 0

    n: Annotated[int, "number of last words that are hidden until the sentence has ended, >= 0"] = 0
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return translations[-1] if ended else without_last(translations[-1], self.n)
