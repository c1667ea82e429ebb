"""Values that flow through the task (frozen, independent of models and files), and the contracts of parts.

Contracts are the methods and attributes of parts.  No base class is required; a part needs only the methods.

    part         must have                  may have
    translator   translate                  translate_batch (then translate is optional), languages, check, fingerprint
    guesser      guess                      guess_prefixes, check_texts, pages, fingerprint
    buzzer       decide                     oracle with decide_with_answer (then decide is optional), fingerprint
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
# Thai, Lao, Tibetan, Burmese, Khmer and related scripts, kana and Chinese characters: written without spaces between
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
    """A listener's question about the source, in English.

    Attributes:
        question: Text of the question; empty if it asks who or what is described, as in Quizbowl.
        answers: Right answers; the first is the question's page.
        answerable: Number of source words after which the question can be answered, at least 0; None if unknown.

    Examples:
        >>> Asked("Where does the ship land?", ("Lima",), answerable=7).answers
        ('Lima',)
    """

    question: str
    answers: tuple[str, ...]
    answerable: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question in the source language, with its human English translation and its answer.

    Attributes:
        id: Identifier, unique in its data set.
        dataset: Name of the data set.
        language: Language of the source, as ISO 639-1: "es", "pl", "en".
        sentences: Source words, sentence by sentence.  A word has no white space.
        reference: Human English sentences, whose number may differ from that of the source sentences.
        page: Canonical page title of the answer.
        word_times: End of each word in the recording, in seconds; empty for text.
        recording: Name of the recording; empty for text.
        asked: A listener's question; None if the question is who or what is described, and only `page` is right.

    Examples:
        >>> Question("q1", "mine", "es", (("Buenos", "días."), ("Adiós.",)), ("Hello.", "Bye."), "Greeting").text
        'Buenos días. Adiós.'
    """

    id: str
    dataset: str
    language: str
    sentences: tuple[tuple[str, ...], ...]
    reference: tuple[str, ...]
    page: str
    word_times: tuple[float, ...] = ()
    recording: str = ""
    asked: Asked | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """All source words in order."""
        return tuple(word for sentence in self.sentences for word in sentence)

    @property
    def text(self) -> str:
        """Source words joined by single spaces; source character positions index into this text."""
        return " ".join(self.words)

    @property
    def reference_text(self) -> str:
        """Human translation as one line."""
        return " ".join(self.reference)


@dataclass(frozen=True, slots=True)
class Emission:
    """One target word and the moment when it became visible.

    Attributes:
        sentence: Index of the source sentence, from 0.
        token: Detokenised target word without spaces; empty only if words are retracted and no word replaces them.
        g: Number of words of this source sentence read when the word was known to be complete.  It lies in 0..|S_i|
            and never decreases within a sentence.
        ended: Whether the translator had already reached the end of the sentence.
        erase: Number of trailing words of this sentence that this write retracts; 0 for append-only systems.

    Examples:
        >>> Emission(sentence=0, token="Hello", g=2, ended=True).erase
        0
    """

    sentence: int
    token: str
    g: int
    ended: bool
    erase: int = 0


class Write(NamedTuple):
    """A write that retracts words of the current sentence; a translator yields it in place of a plain word.

    Attributes:
        token: Target word; empty if no word replaces the retracted ones (then `erase` is at least 1).
        erase: Number of trailing words of this sentence to retract first.

    Examples:
        >>> Write("Hello", erase=1)  # replaces the last word by "Hello"
        Write(token='Hello', erase=1)
    """

    token: str
    erase: int = 0


class Guess(NamedTuple):
    """A page and the guesser's score for it.

    Attributes:
        page: Title of the page.
        score: Score of the page; higher is better.  Each guesser has its own scale.

    Examples:
        >>> Guess("Peru", 12.5).page
        'Peru'
    """

    page: str
    score: float

    @classmethod
    def many(cls, pages: Iterable[str], scores: Iterable[float]) -> list[Guess]:
        """Return list(map(Guess, pages, scores)), but three times as fast, because a run has a million guesses.

        Args:
            pages: Titles of the pages.
            scores: One score per page.

        Returns:
            One guess per page, in the same order.

        Raises:
            ValueError: If the numbers of pages and scores differ.
        """
        return list(map(partial(tuple.__new__, cls), zip(pages, scores, strict=True)))


@dataclass(frozen=True, slots=True)
class Buzz:
    """The buzzer's confidence at one step and its decision to answer there.

    Attributes:
        score: Confidence, finite; higher is more confident.  Each buzzer has its own scale.
        buzz: Whether to answer at this step.

    Examples:
        >>> Buzz(0.7, buzz=True).score
        0.7
    """

    score: float
    buzz: bool


# -------------------------------------------------------------------------------------------------------- contracts

Kind = Literal["quality", "lag", "answers"]  # property that a metric measures


@runtime_checkable
class Fingerprinted(Protocol):
    """A part that identifies everything that determines its output; required of a registered part.

    It is optional for a user-defined part, whose keys contain its code and config anyway.  Such a part needs it for
    models and other files that it reads.

    Examples:
        >>> class Part:
        ...     def fingerprint(self): return "pages.jsonl of 2026-05-01"
        >>> isinstance(Part(), Fingerprinted)
        True
    """

    def fingerprint(self) -> str:
        """Identify the output of the part.

        Returns:
            A text that is equal only if the same inputs give the same output: weights, code version, config.
        """


# ------------------------------------------------------------------------------------------------------ translators


@runtime_checkable
class Translator(Protocol):
    """A translator that writes target words while it pulls source words.

    `next(source)` is READ and `yield` is WRITE.  The number of words pulled when a word is yielded is g(j), so a
    translator cannot look ahead.

    Examples:
        >>> class Upper:  # writes each word as soon as it is read
        ...     def translate(self, source): yield from map(str.upper, source)
        >>> list(Upper().translate(iter(["buenos", "días"])))
        ['BUENOS', 'DÍAS']
    """

    def translate(self, source: Iterator[str]) -> Iterator[str | Write]:
        """Translate one sentence.

        Args:
            source: Iterator over the words of the sentence; `next` raises StopIteration after the last word.

        Yields:
            Target words without spaces; a `Write` instead of a word retracts words of the sentence.

        Raises:
            SqaError: If the sentence cannot be translated; the run ends with that message.
        """


@runtime_checkable
class BatchTranslator(Protocol):
    """Optional fast path that translates whole questions at once, with exactly the emissions of `translate`.

    Examples:
        >>> class Silent:
        ...     def translate_batch(self, questions): return [[] for _ in questions]
        >>> isinstance(Silent(), BatchTranslator)
        True
    """

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Translate questions.

        Args:
            questions: Questions of the run's data set.

        Returns:
            The emissions of each question, in the order of the questions.

        Raises:
            SqaError: If a question cannot be translated; the run ends with that message.
        """


@runtime_checkable
class KnowsLanguages(Protocol):
    """Optional for a translator: its language pair.

    Questions of another pair raise ConfigError before work starts, unless the config has `other_languages: true`
    next to the translator's name.

    Examples:
        >>> class Polish:
        ...     languages = ("pl", "en")
        >>> isinstance(Polish(), KnowsLanguages)
        True
    """

    @property
    def languages(self) -> tuple[str | None, str | None] | None:
        """ISO 639-1 codes of source and target, each None if unknown; None: both unknown."""


@runtime_checkable
class ChecksQuestions(Protocol):
    """Optional for a translator: a check of the whole data set before the first translation.

    A file of translations, for example, must match the data set.

    Examples:
        >>> class Patient:
        ...     def check(self, questions): assert len(questions) < 100
        >>> isinstance(Patient(), ChecksQuestions)
        True
    """

    def check(self, questions: Sequence[Question]) -> None:
        """Check the questions of a run.

        Args:
            questions: All questions of the run.

        Raises:
            SqaError: If the translator cannot translate them.
        """


# --------------------------------------------------------------------------------------------------------- guessers


@runtime_checkable
class Guesser(Protocol):
    """A guesser that names the best pages for each text.

    Examples:
        >>> class Always:
        ...     def guess(self, texts, n): return [[Guess("Peru", 1.0)][:n] for _ in texts]
        >>> Always().guess(["This country"], n=50)
        [[Guess(page='Peru', score=1.0)]]
    """

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Name the best pages for each text.

        Args:
            texts: Beginnings of translations.
            n: Maximum number of guesses per text, at least 1.

        Returns:
            At most `n` guesses per text, best first, pages distinct, ties broken by page title.  A text without a
            known word gives an empty list.

        Raises:
            SqaError: If the guesser fails; the run ends with that message.
        """


@runtime_checkable
class IncrementalGuesser(Protocol):
    """Optional fast path: guesses after every word of a growing text.

    Examples:
        >>> class Always:
        ...     def guess_prefixes(self, words, n): return [[Guess("Peru", 1.0)] for _ in words]
        >>> len(Always().guess_prefixes(["This", "country"], n=50))
        2
    """

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the guesses for " ".join(words[:1]), " ".join(words[:2]) and so on.

        Args:
            words: Target words of one question.
            n: Maximum number of guesses per word, at least 1.

        Returns:
            One list per word, equal to those that `guess` returns for each of these texts.

        Raises:
            SqaError: If the guesser fails; the run ends with that message.
        """


def guesses_per_word(guesser: Guesser, words: Sequence[str], n: int) -> Sequence[Sequence[Guess]]:
    """Return the guesses after each word of a text, by the fast path if the guesser has it.

    Args:
        guesser: A guesser.
        words: Target words of one question.
        n: Maximum number of guesses per word, at least 1.

    Returns:
        One list of guesses per word, best first.

    Raises:
        SqaError: If the guesser fails.

    Examples:
        >>> class Longest:
        ...     def guess(self, texts, n): return [[Guess(max(text.split(), key=len), 1.0)] for text in texts]
        >>> [guesses[0].page for guesses in guesses_per_word(Longest(), ["the", "Inca"], n=1)]
        ['the', 'Inca']
    """
    if isinstance(guesser, IncrementalGuesser):
        return guesser.guess_prefixes(words, n)
    return guesser.guess(list(accumulate(words, lambda text, word: f"{text} {word}")), n)


@runtime_checkable
class AnswersQuestions(Protocol):
    """A guesser that answers English questions about a source; other guessers name the page that a text describes.

    Examples:
        >>> class Always:
        ...     def answer(self, asked, texts, n): return [[Guess("Lima", 1.0)] for _ in texts]
        >>> isinstance(Always(), AnswersQuestions)
        True
    """

    def answer(self, asked: str, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Answer a question in English from each text.

        Args:
            asked: The question.
            texts: Beginnings of translations.
            n: Maximum number of guesses per text, at least 1.

        Returns:
            Short answers to the question, ordered as by `Guesser.guess`.

        Raises:
            SqaError: If the guesser fails; the run ends with that message.
        """


@runtime_checkable
class ChecksTexts(Protocol):
    """Optional for a guesser: a check of all texts of the run before the first guess, since guesses may cost money.

    Examples:
        >>> class Cheap:
        ...     def check_texts(self, texts): assert sum(map(len, texts)) < 10_000
        >>> isinstance(Cheap(), ChecksTexts)
        True
    """

    def check_texts(self, texts: Iterable[Sequence[str]]) -> None:
        """Check the texts of a run.

        Args:
            texts: The texts of each question, from the shortest to the longest.

        Raises:
            SqaError: If the guesser refuses them.
        """


@runtime_checkable
class KnowsPages(Protocol):
    """Optional for a guesser: the pages that it can name; the report counts questions about other pages.

    Examples:
        >>> class Small:
        ...     pages = ("Peru", "Iceland")
        >>> isinstance(Small(), KnowsPages)
        True
    """

    @property
    def pages(self) -> Iterable[str] | None:
        """Pages that the guesser can name; None if unknown."""


# ---------------------------------------------------------------------------------------------------------- buzzers


@runtime_checkable
class Buzzer(Protocol):
    """A buzzer that scores each step of one question from the guesses so far.

    Examples:
        >>> class Eager:  # answers as soon as there is a guess
        ...     def decide(self, history): return [Buzz(float(len(guesses)), bool(guesses)) for guesses in history]
        >>> Eager().decide([[], [Guess("Peru", 1.0)]])[1]
        Buzz(score=1.0, buzz=True)
    """

    def decide(self, history: Sequence[Sequence[Guess]]) -> list[Buzz]:
        """Decide at each step whether to answer.

        Args:
            history: The guesses of each step, best first.  Step t may use history[: t + 1] only.

        Returns:
            One buzz per step; the first with `buzz` is the answer.

        Raises:
            SqaError: If the buzzer fails; the run ends with that message.
        """


@runtime_checkable
class OracleBuzzer(Protocol):
    """A buzzer that is told the right page if its `oracle` is True; all other buzzers see only guesses.

    Examples:
        >>> class Oracle:
        ...     oracle = True
        ...     def decide_with_answer(self, history, page): return [Buzz(1.0, row[0].page == page) for row in history]
        >>> Oracle().decide_with_answer([[Guess("Peru", 1.0)]], "Peru")
        [Buzz(score=1.0, buzz=True)]
    """

    oracle: bool

    def decide_with_answer(self, history: Sequence[Sequence[Guess]], page: str) -> list[Buzz]:
        """Decide at each step whether to answer, with the answer known.

        Args:
            history: The guesses of each step, best first.
            page: The right page.

        Returns:
            One buzz per step; the first with `buzz` is the answer.

        Raises:
            SqaError: If the buzzer fails; the run ends with that message.
        """


# ---------------------------------------------------------------------------------------------------------- metrics


@runtime_checkable
class Metric(Protocol):
    """Additive statistics per question plus a score of their sum, so that resampling works for every metric.

    Reports, figures and tables use the metric's name, unit, digits and label.

    Examples:
        >>> from sqa.metrics import build
        >>> [ew] = build(["ew"])
        >>> ew.unit, ew.score(np.array([1.5, 3.0]))  # the sum over 3 questions
        ('0-1', 0.5)
    """

    @property
    def name(self) -> str:
        """Name from which the metric was built: "ew", "ew@xqb-interface"; any name for a user-defined metric."""

    @property
    def unit(self) -> str:
        """Unit of the score: "0-1", "0-100", "words", "per word", ..."""

    @property
    def digits(self) -> int:
        """Decimal places in reports."""

    @property
    def label(self) -> str:
        """Name in figures and tables: "EW"."""

    @property
    def kind(self) -> str:
        """Property that the metric measures: "quality", "lag" or "answers"."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher score is better."""

    def signature(self) -> str:
        """Describe how the values of this metric are computed.

        Returns:
            A text; two values are comparable if their signatures are equal.
        """

    def stats(self, trace: Any) -> Floats:
        """Return the statistics of one question.

        Args:
            trace: The question's `QuestionTrace` (sqa/core/trace.py).

        Returns:
            Statistics (d,) float64; `score` takes their sum over questions.

        Raises:
            NotComputable: If the metric is undefined for the question.
        """

    def score(self, stats: Floats) -> float:
        """Return the score of a sum of statistics.

        Args:
            stats: Sum of the statistics over questions, (d,) float64.

        Returns:
            The score, in `unit`.

        Raises:
            NotComputable: If the score is undefined for the sum.
        """


class BuiltMetric(Metric, Protocol):
    """A metric built by `sqa.metrics.build`; a user-defined metric without `score_many` gets one that calls `score`.

    Examples:
        >>> from sqa.metrics import build
        >>> build(["ew"])[0].score_many(np.array([[1.5, 3.0], [0.0, 2.0]])).tolist()
        [0.5, 0.0]
    """

    def score_many(self, stats: Floats) -> Floats:
        """Return the scores of several sums of statistics; the fast path of `score`.

        Args:
            stats: Sums of statistics, (B, d) float64.

        Returns:
            Scores (B,) float64; nan if a score is undefined.
        """


@runtime_checkable
class TextMetric(BuiltMetric, Protocol):
    """A metric computed only from texts.  The same fingerprint and texts give the same statistics, which are stored.

    Examples:
        >>> from sqa.metrics.quality.text_metric import MeanOfSegments
        >>> isinstance(MeanOfSegments("chars", "v1", "", scores=lambda segments: [0.0 for _ in segments]), TextMetric)
        True
    """

    def fingerprint(self) -> str | None:
        """Identify everything besides the texts that affects the statistics.

        Returns:
            A text that is equal only if the same texts give the same statistics; None if they must not be stored.
        """

    def measure(self, segments: Sequence[Any]) -> list[tuple[float, ...]]:
        """Return the additive statistics of segments.

        Args:
            segments: The texts, as `Segment` (sqa/metrics/quality/text_metric.py).

        Returns:
            One tuple of d statistics per segment.

        Raises:
            DataError: If the model behind the metric fails or gives an invalid score.
        """


# kind of registry -> contracts; a component fulfils at least one of them
CONTRACTS: dict[str, tuple[type, ...]] = {
    "translator": (Translator, BatchTranslator),
    "guesser": (Guesser,),
    "buzzer": (Buzzer, OracleBuzzer),
}
METHODS = {"translator": "translate", "guesser": "guess", "buzzer": "decide"}  # methods required of a user-defined part
