"""Existing text as a translator: the human reference, or another system's output from a file.

    translator: {name: fixed, text: reference, reveal: full}
    translator: {name: fixed, text: google.txt, unit: sentence}
    translator: {name: fixed, text: source, reveal: diagonal}    # copies each source word when it is read

`reveal` sets when the words appear.  "full": the translation of a sentence appears when the sentence has been read (k =
infinity).  "diagonal": target word j of |T| appears after ceil(j |S| / |T|) source words, whatever their order.  With a
translation, this is an alignment oracle and not a system: some words appear before their source word is read
(docs/limits.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from sqa.core import SOUGHT, DataError, Emission, File, Question, by_sentence
from sqa.files import clean_lines, digest

VERSION = 1  # increase when the emissions change
GIVEN = ("reference", "source")  # texts that every question has


@dataclass(frozen=True, slots=True)
class FixedConfig:
    """The text and the time at which its words appear."""

    text: Annotated[File, '"reference" (human translation), "source", or a UTF-8 file'] = "reference"
    reveal: Annotated[
        Literal["full", "diagonal"], "after the whole sentence, or at an even pace (an oracle that reads ahead)"
    ] = "full"
    unit: Annotated[Literal["sentence", "question"], "unit that each line of the file translates"] = "sentence"

    ABSENT: ClassVar = {"k": "a fixed text has no k; `reveal` sets when its words appear"}


class FixedTranslator:
    """Emissions of a given text for whole questions; nothing is streamed."""

    def __init__(self, config: FixedConfig) -> None:
        self.config = config
        self._file = None if config.text in GIVEN else Path(config.text)
        if self._file and not self._file.exists():
            raise DataError(f"{self._file}: must be 'reference', 'source' or a file that exists; {SOUGHT}")
        self._lines = clean_lines(self._file) if self._file else None

    def check(self, questions: Sequence[Question]) -> None:
        """Compare the file's line count with the whole data set; raises DataError if they differ."""
        if self._lines is None:
            return
        units = [1 if self.config.unit == "question" else len(question.sentences) for question in questions]
        if len(self._lines) != sum(units):
            expected = f"expected {sum(units)}, one for each {self.config.unit}, empty lines included"
            other = ("question", len(questions)), ("sentence", sum(len(q.sentences) for q in questions))
            fits = [f"; set `unit: {unit}` if a line is a {unit}" for unit, n in other if n == len(self._lines)]
            raise DataError(f"{self._file}: {len(self._lines)} lines, {expected}{''.join(fits)}")
        lines = iter(self._lines)
        self._of = {q.id: [*islice(lines, n)] for q, n in zip(questions, units, strict=True)}

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions; for a file, call `check` with the whole data set first."""
        return [self._emissions(question) for question in questions]

    def _emissions(self, question: Question) -> list[Emission]:
        targets: Sequence[str] = question.reference
        if self.config.text == "source":
            targets = [" ".join(sentence) for sentence in question.sentences]
        if self._lines is not None:
            targets = self._of[question.id]
        if len(targets) == len(question.sentences):
            pairs = enumerate(zip(question.sentences, targets, strict=True))
            paced = [word for i, (source, target) in pairs for word in _diagonal(i, len(source), target.split())]
        else:  # spread the words evenly over the question's source words
            spread = _diagonal(0, len(question.words), " ".join(targets).split())
            paced = list(by_sentence(question, ((e.token, e.g, False, 0) for e in spread)))
        if self.config.reveal == "diagonal":
            return paced
        return [Emission(e.sentence, e.token, len(question.sentences[e.sentence]), True) for e in paced]

    def fingerprint(self) -> str:
        """Return a hash of the text, its unit and `reveal`."""
        text = {"given": self.config.text} if self._lines is None else {"lines": self._lines}
        return digest(["fixed", VERSION, self.config.reveal, self.config.unit, text])


def _diagonal(sentence: int, size: int, words: Sequence[str]) -> list[Emission]:
    """Place target word j = 1, ..., |T| after ceil(j |S| / |T|) source words, where |S| is `size`."""
    return [Emission(sentence, word, -(-j * size // len(words)), False) for j, word in enumerate(words, 1)]


def build(config: FixedConfig) -> FixedTranslator:
    """Return the translator of a config."""
    return FixedTranslator(config)
