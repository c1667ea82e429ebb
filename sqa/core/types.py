"""Values that flow through the task (frozen, independent of models and files), and the contracts of parts.

Contracts are the methods and attributes of parts.  No base class is required; a part needs only the methods.

    part         must have                  may have
    translator   translate                  translate_batch (then translate may lack), languages, check, fingerprint
    guesser      guess                      guess_prefixes, check_texts, pages, fingerprint
    buzzer       decide                     oracle with decide_with_answer (then decide may lack), fingerprint
    metric       name, unit, digits, label, score_many
                 kind, higher_is_better,
                 signature, stats, score

The fast paths (`translate_batch`, `guess_prefixes`, `score_many`) are optional; a conformance test compares each
with the plain method.  Store keys of a user-defined part contain its code (sqa/core/own/code.py), its config, and
its `fingerprint` if it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

# kinds of arrays in signatures; the docstrings give their shapes
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# languages in which each character is a word; a run of letters of other scripts is also a word
BY_CHARACTER = frozenset(("ja", "yue", "zh"))
# Thai, Lao, Tibetan, Burmese, Khmer and related scripts, kana and Chinese characters: written without blanks between
# words
BLANKLESS = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u3005-\u3007\u3031-\u3035\u303b-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua980-\ua9ff\uaa60-\uaadf\uf900-\ufaff\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
# maximum of a trace's columns with 16 bits: sentences of a question, words that a step retracts
GREATEST_SMALL = 2**15 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """A listener's question about the source, in English."""

    question: str  # "" = who or what is meant, as in Quizbowl
    answers: tuple[str, ...]  # the right answers; the question's page is the first
    answerable: int | None = None  # source words after which it can be answered, >= 0; None = unknown


@dataclass(frozen=True, slots=True)
class Question:
    """One question in the source language, with its human English translation and its answer.

    `sentences` holds the source words, sentence by sentence.  Words are separated by white space, so " ".join of
    all words is the question's text with single blanks.  `reference` holds the human English sentences, whose
    number may differ from that of the source sentences.  `page` is the answer's canonical page title.
    """

    id: str
    dataset: str
    language: str  # ISO 639-1 of the source: "es", "pl", "en"
    sentences: tuple[tuple[str, ...], ...]
    reference: tuple[str, ...]
    page: str
    word_times: tuple[float, ...] = ()  # seconds of the recording at the end of each word; () = text
    recording: str = ""  # name of the recording
    asked: Asked | None = None  # None = who or what is meant, and `page` alone is right

    @property
    def words(self) -> tuple[str, ...]:
        """All source words in order."""
        return tuple(word for sentence in self.sentences for word in sentence)

    @property
    def text(self) -> str:
        """Source text with single blanks; source character positions index into it."""
        return " ".join(self.words)

    @property
    def reference_text(self) -> str:
        """Human translation as one line."""
        return " ".join(self.reference)


@dataclass(frozen=True, slots=True)
class Emission:
    """One target word and the moment when it became visible.

    `g` is the number of words of THIS source sentence read when the word was known to be complete (0 <= g <= |S_i|,
    never decreasing within a sentence).  `ended` is True if the translator had already reached the end of the
    sentence.  `erase` is the number of trailing words of this sentence that this write retracts (0 for append-only
    systems).
    """

    sentence: int  # 0-based
    token: str  # a detokenised target word, without blanks; "" only if words are retracted and none follows
    g: int
    ended: bool
    erase: int = 0


class Write(NamedTuple):
    """A write that retracts words of the current sentence; a translator yields it in place of a plain word."""

    token: str  # a target word; "" = no word replaces the retracted ones (then erase > 0)
    erase: int = 0  # trailing words of this sentence to retract first


class Guess(NamedTuple):
    """A page and its score by the guesser (higher is better; each guesser has its own scale)."""

    page: str
    score: float

    @classmethod
    def many(cls, pages: Iterable[str], scores: Iterable[float]) -> list[Guess]:
        """Return list(map(Guess, pages, scores)), three times as fast, because a run has a million guesses."""
        return list(map(partial(tuple.__new__, cls), zip(pages, scores, strict=True)))


@dataclass(frozen=True, slots=True)
class Buzz:
    """The buzzer's confidence at one step and its decision to answer there."""

    score: float
    buzz: bool


# -------------------------------------------------------------------------------------------------------- contracts

Kind = Literal["quality", "lag", "answers"]  # property that a metric measures


@runtime_checkable
class Fingerprinted(Protocol):
    """A part that identifies everything that determines its output; required of a registered part.

    It is optional for a user-defined part, whose keys contain its code and config anyway.  Such a part needs it for
    models and other files that it reads.
    """

    def fingerprint(self) -> str:
        """Return a text that is equal only if the same inputs give the same output: weights, code version, config."""


# ------------------------------------------------------------------------------------------------------ translators


@runtime_checkable
class Translator(Protocol):
    """A translator that writes target words while it pulls source words.

    `next(source)` is READ and `yield` is WRITE: the number of words pulled when a word is yielded IS g(j), so a
    translator cannot look ahead.  `source` raises StopIteration at the end of the sentence.  To retract words, a
    translator yields a `Write` instead of a word.
    """

    def translate(self, source: Iterator[str]) -> Iterator[str | Write]: ...


@runtime_checkable
class BatchTranslator(Protocol):
    """Optional fast path: whole questions at once, with exactly the emissions of `translate`."""

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]: ...


@runtime_checkable
class KnowsLanguages(Protocol):
    """Optional for a translator: its language pair.

    Questions of another pair raise an error before work starts, unless the config has `other_languages: true` next to
    the translator's name.
    """

    @property
    def languages(self) -> tuple[str | None, str | None] | None:
        """ISO 639-1 codes of source and target, each None if unknown; None: both unknown."""


@runtime_checkable
class ChecksQuestions(Protocol):
    """Optional for a translator: a check of the whole data set before the first translation.

    A file of translations, for example, must match the data set.
    """

    def check(self, questions: Sequence[Question]) -> None: ...


# --------------------------------------------------------------------------------------------------------- guessers


@runtime_checkable
class Guesser(Protocol):
    """A guesser that names the best pages for each text.

    Returns, per text, at most `n` guesses, best first, pages distinct, ties broken by page title. A text without a
    known word gives an empty list.
    """

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]: ...


@runtime_checkable
class IncrementalGuesser(Protocol):
    """Optional fast path: guesses after every word of a growing text."""

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the guesses for " ".join(words[:1]), " ".join(words[:2]) and so on.

        The guesses must equal those that `guess` returns for each of these texts.
        """


def guesses_per_word(guesser: Guesser, words: Sequence[str], n: int) -> Sequence[Sequence[Guess]]:
    """Return the guesses after each word of a text, by the fast path if the guesser has it."""
    if isinstance(guesser, IncrementalGuesser):
        return guesser.guess_prefixes(words, n)
    return guesser.guess(list(accumulate(words, lambda text, word: f"{text} {word}")), n)


@runtime_checkable
class AnswersQuestions(Protocol):
    """A guesser for data sets with questions in English; other guessers name the thing that a text describes."""

    def answer(self, asked: str, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return guesses like `guess`, as short answers to a question in English."""


@runtime_checkable
class ChecksTexts(Protocol):
    """Optional for a guesser: a check of all texts of the run before the first guess, since guesses may cost money."""

    def check_texts(self, texts: Iterable[Sequence[str]]) -> None: ...


@runtime_checkable
class KnowsPages(Protocol):
    """Optional for a guesser: the pages that it can name; the report counts questions about other pages."""

    @property
    def pages(self) -> Iterable[str] | None:
        """Pages that the guesser can name; None if unknown."""


# ---------------------------------------------------------------------------------------------------------- buzzers


@runtime_checkable
class Buzzer(Protocol):
    """A buzzer that scores each step of one question from the guesses so far; step t sees history[: t + 1] only."""

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]: ...


@runtime_checkable
class OracleBuzzer(Protocol):
    """A buzzer that gets the answer if `oracle` is True; no other buzzer does."""

    oracle: bool

    def decide_with_answer(self, history: Sequence[Sequence[Guess]], page: str) -> list[Buzz]: ...


# ---------------------------------------------------------------------------------------------------------- metrics


@runtime_checkable
class Metric(Protocol):
    """Additive statistics per question plus a score of their sum, so that resampling works for every metric.

    Reports, figures and tables use its name, unit, digits and label.
    """

    @property
    def name(self) -> str:
        """Name that it was built from: "ew", "ew@xqb-interface"; any name for a user-defined metric."""

    @property
    def unit(self) -> str:
        """Unit of its score: "0-1", "0-100", "words", "per word", ..."""

    @property
    def digits(self) -> int:
        """Decimal places in reports."""

    @property
    def label(self) -> str:
        """Name in figures and tables: "EW"."""

    @property
    def kind(self) -> str:
        """Property that it measures: a `Kind`."""

    @property
    def higher_is_better(self) -> bool: ...

    def signature(self) -> str:
        """Return everything that makes two values of this metric comparable."""

    def stats(self, trace: Any) -> Floats:
        """Return statistics (d,) float64 of a `QuestionTrace`; raises NotComputable if the metric is undefined."""

    def score(self, stats: Floats) -> float:
        """Return the score of a sum of statistics (d,); raises NotComputable if it is undefined."""


class BuiltMetric(Metric, Protocol):
    """A metric built by `sqa.metrics.build`; a user-defined metric without `score_many` gets a plain one."""

    def score_many(self, stats: Floats) -> Floats:
        """Return the scores (B,) of sums of statistics (B, d), nan if undefined; the fast path."""


@runtime_checkable
class TextMetric(BuiltMetric, Protocol):
    """A metric of texts alone.  The same fingerprint and texts give the same statistics, which are stored."""

    def fingerprint(self) -> str | None:
        """Return everything except the texts on which the statistics depend, or None if they must not be stored."""

    def measure(self, segments: Sequence[Any]) -> list[tuple[float, ...]]:
        """Return the additive statistics of each `Segment` (sqa/metrics/quality/text_metric.py)."""


# kind of registry -> base class or contract of its components
CONTRACTS: dict[str, tuple[type, ...]] = {
    "translator": (Translator, BatchTranslator),
    "guesser": (Guesser,),
    "buzzer": (Buzzer, OracleBuzzer),
}
METHODS = {"translator": "translate", "guesser": "guess", "buzzer": "decide"}  # methods required of a user-defined part
