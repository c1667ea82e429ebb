"""Questions as metrics of runs.

    answered             share of the questions with a right answer that stays right
    answered-lag         source words between a question's source word and its answer: mean over answered questions
    answered@name        the share of the questions of a kind; also answered-lag@name
    answered@FILE.jsonl  the questions of a file about the run's human translations (sqa questions make)

Without a file, the questions are the clozes of each human translation, without filters.  The reader is that of rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from sqa.core.trace import QuestionTrace
from sqa.core.types import Floats
from sqa.data.languages import code_of
from sqa.metrics.measure import Family, MeanMetric, choices
from sqa.metrics.quality.facts import lexicon_digest
from sqa.questions.ask import EARLY, Answered, answers_of
from sqa.questions.files import QuestionFile, TextQuestion, read_questions, reference_digest
from sqa.questions.measures import VERSION
from sqa.questions.rules import Rules, clozes
from sqa.questions.texts import segment_of

TARGET = "en"  # language of human translations without a file of questions


_ASKED_OF = (choices("about", "name", "number", "date"), choices("file", pattern=r".+\.jsonl"))


@Family("answered", "Questions answered", parameters=_ASKED_OF)
@dataclass(frozen=True, slots=True)
class RunAnswers(MeanMetric):
    """A metric of answers, see the module's docstring; stats are those of `sqa ask`, (2,)."""

    side: Literal["share", "lag"] = "share"
    about: str = ""  # "": all kinds
    file: str = ""

    def signature(self) -> str:
        questions = read(self.file).digest if self.file else f"clozes|lexicon:{lexicon_digest()}"
        about = f"{self.family.base}|kind:{self.about or 'all'}|questions:{questions}|reader:rules"
        return f"{about}|segment:question|right:stable|early:{EARLY['words']:g}|version:{VERSION}"

    def stats(self, trace: QuestionTrace) -> Floats:
        self.require(trace)
        chosen = [a for a in answered(trace, self.file) if self.about in ("", a.question.kind)]
        if self.side == "share":
            return np.array([sum(a.outcome == "answered" for a in chosen), len(chosen)], dtype=np.float64)
        lags = [a.lag for a in chosen if a.lag is not None]
        return np.array([sum(lags), len(lags)], dtype=np.float64)


@Family("answered-lag", "Lag of answers", kind="lag", unit="words", digits=2, parameters=_ASKED_OF)
@dataclass(frozen=True, slots=True)
class RunAnswersLag(RunAnswers):
    """The lag of answers in source words."""

    side: Literal["share", "lag"] = "lag"


@cache
def read(file: str) -> QuestionFile:
    """Return the questions of a file, read once."""
    return read_questions(Path(file))


def answered(trace: QuestionTrace, file: str) -> Sequence[Answered]:
    """Return the answers to the questions about a trace's human translation, in source words."""
    questions, language = questions_about(
        trace.question.reference_text, trace.question.text, trace.question.language, file
    )
    segment = segment_of(trace)
    return answers_of([(question, segment) for question in questions], "words", Rules(language))


@lru_cache(maxsize=1024)
def questions_about(reference: str, source: str, language: str, file: str) -> tuple[Sequence[TextQuestion], str]:
    """Return the questions about a human translation, and their language; without a file, a fact's first cloze."""
    if file:
        digest = reference_digest(reference)
        return [question for question in read(file).questions if question.reference == digest], read(file).pair[1]
    made = clozes(0, reference, source, (code_of(language), TARGET))
    return list({question.question: question for question in reversed(list(made))}.values())[::-1], TARGET


def summary_of(trace: QuestionTrace) -> str:
    """Return a sentence with each question's kind and the source word that answers it; "" without questions."""
    at = [
        f"{a.question.answers[0]} ({a.question.kind}) {f'from word {a.word}' if a.outcome == 'answered' else a.outcome}"
        for a in answered(trace, "")
    ]
    return f"Answerable: {', '.join(at)}." if at else ""
