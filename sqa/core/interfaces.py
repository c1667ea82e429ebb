"""The contracts: everything that a part may have.  Anything with these methods takes part; nothing has to inherit.

    part         must have                  may have
    translator   translate                  translate_batch (then translate may lack), languages, check, fingerprint
    guesser      guess                      guess_prefixes, check_texts, pages, fingerprint
    buzzer       decide                     oracle with decide_with_answer (then decide may lack), fingerprint
    metric       name, unit, digits, label, score_many
                 kind, higher_is_better,
                 signature, stats, score

The fast paths (`translate_batch`, `guess_prefixes`, `score_many`) are optional: a conformance test proves each equal to
the plain method.  Results of a part of your own are stored under its code (sqa/core/own/code.py) and its config, and
under its `fingerprint` if it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from sqa.core.types import Buzz, Emission, Floats, Guess, Question, Write

Kind = Literal["quality", "lag", "answers"]  # of a metric: what it measures


@runtime_checkable
class Fingerprinted(Protocol):
    """Names what decides a part's output; a registered part has it.

    Optional for a part of your own: all code that it loads and its config are known without it, models and other
    files that it reads are not.  It is for these, and never takes the place of the code.
    """

    def fingerprint(self) -> str:
        """Equal only if the same inputs give the same output: weights, version of the code, config."""
        ...


# ------------------------------------------------------------------------------------------------------ translators


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
class KnowsLanguages(Protocol):
    """Optional for a translator: the pair it translates.  Questions of another one are refused before work starts.

    Who means it says `other_languages: true` beside the translator's name in a config.
    """

    @property
    def languages(self) -> tuple[str | None, str | None] | None:
        """ISO 639-1 codes of source and target, each None where it cannot say; None: neither."""
        ...


@runtime_checkable
class ChecksQuestions(Protocol):
    """Optional for a translator: it wants to see the whole data set first (a file of translations must fit it)."""

    def check(self, questions: Sequence[Question]) -> None: ...


# --------------------------------------------------------------------------------------------------------- guessers


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
class AnswersQuestions(Protocol):
    """A guesser that is told what is asked, where that is not who or what is meant; else it may have no guess."""

    def answer(self, asked: str, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """As `guess`, of short answers to a question in English."""
        ...


@runtime_checkable
class ChecksTexts(Protocol):
    """Optional for a guesser: it wants to see all texts of the run first (each of them may cost money)."""

    def check_texts(self, texts: Iterable[Sequence[str]]) -> None: ...


@runtime_checkable
class KnowsPages(Protocol):
    """Optional for a guesser: the pages that it can name; questions about others are counted in the report."""

    @property
    def pages(self) -> Iterable[str] | None:
        """None: it cannot say."""
        ...


# ---------------------------------------------------------------------------------------------------------- buzzers


@runtime_checkable
class Buzzer(Protocol):
    """Scores each step of one question from the guesses so far; step t sees history[: t + 1] only."""

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]: ...


@runtime_checkable
class OracleBuzzer(Protocol):
    """A buzzer that is told the answer, where `oracle` is True; no other is."""

    oracle: bool

    def decide_with_answer(self, history: Sequence[Sequence[Guess]], page: str) -> list[Buzz]: ...


# ---------------------------------------------------------------------------------------------------------- metrics


@runtime_checkable
class Metric(Protocol):
    """Additive statistics per question plus a score of their sum, so that resampling knows no metric by name.

    It says itself how it is shown; no report, figure or table knows a metric by name.
    """

    @property
    def name(self) -> str:
        """What it was built from: "ew", "ew@xqb-interface"; of your own whatever you call it."""
        ...

    @property
    def unit(self) -> str:
        """Of its score: "0-1", "0-100", "words", "per word", ..."""
        ...

    @property
    def digits(self) -> int:
        """After the point, in reports."""
        ...

    @property
    def label(self) -> str:
        """What figures and tables call it: "EW"."""
        ...

    @property
    def kind(self) -> str:
        """What it measures: a `Kind`."""
        ...

    @property
    def higher_is_better(self) -> bool: ...

    def signature(self) -> str:
        """Everything that makes two values of this metric comparable."""
        ...

    def stats(self, trace: Any) -> Floats:
        """A `QuestionTrace` -> (d,) float64.  NotComputable where the metric is undefined."""
        ...

    def score(self, stats: Floats) -> float:
        """A sum of statistics (d,) -> the score; NotComputable where undefined."""
        ...


@runtime_checkable
class ScoresMany(Protocol):
    """Optional fast path of a metric: sums of statistics (B, d) -> scores (B,), nan where undefined."""

    def score_many(self, stats: Floats) -> Floats: ...


class BuiltMetric(Metric, ScoresMany, Protocol):
    """A metric as `sqa.metrics.build` gives it: one of your own that has no fast path has been given a plain one."""


# what a component of each kind of registry must be
CONTRACTS: dict[str, tuple[type, ...]] = {
    "translator": (Translator, BatchTranslator),
    "guesser": (Guesser,),
    "buzzer": (Buzzer, OracleBuzzer),
}
