"""Interface of policies, changes of the text shown to a reader, custom policies, and policies with one number, n.

policy: {name: "mine.py:build", patience: 2}

Policies work around a system that translates prefixes; see `smt.policies.prefixes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

from sqa.core import POLICIES, ConfigError, Write
from sqa.core.paths import OwnPart, short

Words = tuple[str, ...]


def append(shown: Words, words: Words) -> Words:
    """Extend `shown` with the words at later positions of `words`."""
    return shown + words[len(shown) :]


def agreed(translations: Sequence[Words]) -> Words:
    """Return the longest common prefix of all translations."""
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*translations, strict=False))
    return tuple(column[0] for column in columns)


def without_last(words: Words, n: int) -> Words:
    """Return all but the last n words."""
    return words[: max(0, len(words) - n)]


def writes(before: Words, after: Words) -> list[Write]:
    """Return the writes that turn `before` into `after`; their common prefix stays.

    The first write retracts words.  It has no word itself if no word follows.
    """
    kept = len(agreed([before, after]))
    new, erase = after[kept:], len(before) - kept
    if not new:
        return [Write("", erase)] if erase else []
    return [Write(new[0], erase), *map(Write, new[1:])]


@runtime_checkable
class Policy(Protocol):
    """A rule that chooses the text shown to the reader at each moment.

    Examples:
        >>> class Behind:  # hides the last word, which often changes
        ...     start = 1
        ...     def show(self, shown, translations, ended): return translations[-1] if ended else translations[-1][:-1]
        >>> Behind().show((), [("the",), ("the", "dog")], ended=False)
        ('the',)
    """

    @property
    def start(self) -> int:
        """Number of source words of the shortest prefix that is translated, at least 1."""

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        """Choose the text to show next.

        Args:
            shown: Target words shown so far.
            translations: Target words of the translations of the first `start`, `start` + 1, ... source words, newest
                last.
            ended: Whether the newest is a translation of the complete sentence.

        Returns:
            The target words to show.  Words of `shown` may be missing, which retracts them.

        Raises:
            SqaError: If the policy fails; the run ends with that message.
        """


def own_policy(part: OwnPart) -> Policy:
    """Return the custom policy that a config names.  Raises ConfigError if the object lacks `start` or `show`."""
    policy: Any = POLICIES.build(part.name, part.options)
    if not isinstance(policy, Policy):
        plain = getattr(policy, "own_part", policy)
        lacking = " and ".join(name for name in ("start", "show") if not hasattr(plain, name))
        raise ConfigError(f"policy: {short(part.name)} returned a {type(plain).__name__}, which has no {lacking}")
    return policy


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
