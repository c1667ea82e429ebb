"""A listener: answers a question about the source from the translation so far, word by word.

    guesser: {name: listener}                                  rules (guessers/open_qa/short_answers.py)
    guesser: {name: listener, reader: lm}                      a causal language model (guessers/open_qa/lm_reader.py)

The translation so far is the one passage.  By rule a date, a number or "yes" is what it is for retrieved passages, but
"yes" only once half of the question's stems have been read; anything else is the name, in the sentence that shares
most stems with the question, that the question does not have.  The last word counts once another follows it or the
sentence is over: "Clara" may go on as "Clara Montes".  No answer: no guess.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from guessers.open_qa.lm_reader import LmReader, LmReaderConfig
from guessers.open_qa.passages import Passage
from guessers.open_qa.short_answers import VERSION as RULES
from guessers.open_qa.short_answers import kind_of, sentences_of, typed_answer
from guessers.text import line_stems
from sqa.core.types import Guess
from sqa.files.store import digest

VERSION = 1  # raise when answers change
HALF = 0.5  # of a question's stems
_NAME = re.compile(r"[A-Z][\w'’-]*(?: (?:(?:of|the|de|la|del|von|van) )*[A-Z][\w'’-]*)*")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Who answers."""

    reader: Literal["rules", "lm"] = "rules"  # names, dates, numbers and yes by rule, or a causal language model
    base: str = "gemma3-270m"  # of reader lm: of the extra lm, or a model's folder, a .gguf file, a hub name


class Listener:
    """Has an answer or none at each step; it needs the question."""

    def __init__(self, config: ListenerConfig) -> None:
        self._lm = LmReader(LmReaderConfig(base=config.base)) if config.reader == "lm" else None

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Nothing: who or what is meant is for guessers that know pages."""
        return [[] for _ in texts]

    def answer(self, asked: str, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """At most one guess for each text."""
        different = list(dict.fromkeys(texts))
        if self._lm is None:
            answers = [rule_answer(asked, text) for text in different]
        else:
            passages = [[Passage("", "", text)] if text else [] for text in different]
            answers = self._lm.answers([asked] * len(different), passages)
        answer_of = dict(zip(different, answers, strict=True))
        return [[Guess(answer_of[text], 1.0)][:n] if answer_of[text].strip() else [] for text in texts]

    def fingerprint(self) -> str:
        """Of the rules, or of the model."""
        return digest(["listener", VERSION, RULES, self._lm.fingerprint() if self._lm else "rules"])


def build(config: ListenerConfig) -> Listener:
    """The guesser of a config."""
    return Listener(config)


def rule_answer(question: str, text: str) -> str:
    """The answer by rule; "" for none."""
    kind, question_stems = kind_of(question), line_stems(question)
    whole = text if text.endswith((".", "!", "?")) else text.rpartition(" ")[0]
    if kind == "yes":
        return "yes" if len(line_stems(whole) & question_stems) >= HALF * len(question_stems) > 0 else ""
    if kind != "thing":
        return typed_answer(question, [Passage("", "", whole)])
    best, most = "", 0
    for sentence in sentences_of(whole):
        names = [name for name in map(_bare, _NAME.findall(sentence)) if not line_stems(name) <= question_stems]
        shared = len(line_stems(sentence) & question_stems)
        if names and shared > most:
            best, most = names[0], shared
    return best


def _bare(name: str) -> str:
    """A name without the stop words that a sentence begins with: "In March"."""
    words = name.split()
    while words and not line_stems(words[0]):
        del words[0]
    return " ".join(words)
