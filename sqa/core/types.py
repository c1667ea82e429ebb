"""The values that flow through the task. All are frozen; none knows a model or a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# the kinds of arrays that signatures name; their shapes stand in the docstrings
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# languages written without blanks: a character is a word, a run of Latin ones too
BY_CHARACTER = frozenset(("ja", "zh"))
# of a trace's columns with 16 bits: sentences of a question, words that a step takes back
GREATEST_SMALL = 2**15 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What a listener is asked about the source, in English."""

    question: str  # "" = who or what is meant, as in Quizbowl
    answers: tuple[str, ...]  # the right ones; the question's page is the first
    answerable: int | None = None  # source words after which it can be answered, >= 0; None = not said


@dataclass(frozen=True, slots=True)
class Question:
    """One question in the source language, with its human English translation and its answer.

    `sentences` holds the source words, sentence by sentence (words = what white space separates), so that
    " ".join of all words is the question's text with single blanks.  `reference` holds the human English
    sentences; their number may differ from that of the source.  `page` is the answer's canonical page title.
    """

    id: str
    dataset: str
    language: str  # ISO 639-1 of the source: "es", "pl", "en"
    sentences: tuple[tuple[str, ...], ...]
    reference: tuple[str, ...]
    page: str
    word_times: tuple[float, ...] = ()  # s of the recording at which each word has been said; () = text
    recording: str = ""  # its name
    asked: Asked | None = None  # None = who or what is meant, and `page` alone is right

    @property
    def words(self) -> tuple[str, ...]:
        """All source words in order."""
        return tuple(word for sentence in self.sentences for word in sentence)

    @property
    def text(self) -> str:
        """The source text with single blanks; source character positions index into it."""
        return " ".join(self.words)

    @property
    def reference_text(self) -> str:
        """The human translation as one line."""
        return " ".join(self.reference)


@dataclass(frozen=True, slots=True)
class Emission:
    """One target word and the moment it became visible.

    `g` is the number of words of THIS source sentence read when the word was known to be complete
    (0 <= g <= |S_i|, never decreasing within a sentence).  `ended` is True when the translator had already
    reached the end of the sentence.  `erase` is the number of trailing words of this sentence that this
    write retracts (0 for append-only systems).
    """

    sentence: int  # 0-based
    token: str  # a detokenised target word, without blanks; "" only where words are retracted and none follows
    g: int
    ended: bool
    erase: int = 0


class Write(NamedTuple):
    """What a translator yields in place of a plain word when it retracts words of the sentence it is at."""

    token: str  # a target word; "" = nothing takes the place of what is retracted (then erase > 0)
    erase: int = 0  # trailing words of this sentence retracted first


class Guess(NamedTuple):
    """A page and the guesser's score for it (higher is better; the scale is the guesser's own)."""

    page: str
    score: float

    @classmethod
    def many(cls, pages: Iterable[str], scores: Iterable[float]) -> list[Guess]:
        """list(map(Guess, pages, scores)) in a third of the time: a run has a million of them."""
        return list(map(partial(tuple.__new__, cls), zip(pages, scores, strict=True)))


@dataclass(frozen=True, slots=True)
class Buzz:
    """The buzzer's confidence at one step and whether it would answer there."""

    score: float
    buzz: bool
