"""The four contracts. Anything with these methods takes part; nothing has to inherit.

The optional methods are fast paths: a conformance test proves each equal to the plain one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from sqa.core.arrays import Floats
from sqa.core.types import Buzz, Emission, Guess, Question, Write


@runtime_checkable
class Translator(Protocol):
    """Writes target words while source words are pulled.

    `next(source)` is READ and `yield` is WRITE: the number of words pulled when a word is yielded IS g(j), so a
    translator cannot look ahead.  `source` raises StopIteration at the end of the sentence.  A translator that takes
    words back yields a `Write` instead of a word where it does.
    """

    def translate(self, source: Iterator[str]) -> Iterator[str | Write]: ...


@runtime_checkable
class BatchTranslator(Protocol):
    """Optional fast path: whole questions at once, the very emissions that `translate` would give."""

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]: ...


@runtime_checkable
class Guesser(Protocol):
    """Names the best pages for each text.

    Returns, per text, at most `n` guesses, best first, pages distinct, ties broken by page title.
    A text in which the guesser knows no word gives an empty list.
    """

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]: ...


@runtime_checkable
class IncrementalGuesser(Protocol):
    """Optional fast path: guesses after every word of a text that only grows."""

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Guesses for " ".join(words[:1]), " ".join(words[:2]), ... equal to `guess` on each."""
        ...


@runtime_checkable
class Buzzer(Protocol):
    """Scores each step of one question from the guesses so far; step t sees history[: t + 1] only."""

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]: ...


class Metric(Protocol):
    """Additive statistics per question plus a score of their sum, so that resampling knows no metric by name."""

    name: str  # what it was built from: "ew", "ew@xqb-interface"
    higher_is_better: ClassVar[bool]

    def signature(self) -> str:
        """Everything that makes two values of this metric comparable."""
        ...

    def stats(self, trace: object) -> Floats: ...  # (d,) float64

    def score(self, stats: Floats) -> float: ...
