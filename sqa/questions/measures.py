"""Measures of answers, with intervals over segments and paired tests of systems.

    answered         share of the questions with a right answer that stays right
    early            share answered before their source word was read, which is a guess and does not count as answered
    lag              source between a question's own source word and its answer: mean over answered questions
    estimated        share of these lags whose source word is estimated from its share of the characters
    answered@T       share answered within T words or seconds of the source word
    invented         share of the translation's own names, numbers and dates that no other text has

All but `invented` are also given for each kind of question.  The unit of resampling is the segment.

In runs, a segment is a question of the data set, and there are two metrics:

    answered             as above; answered@name is the share of the questions of a kind
    answered-lag         the lag in source words; answered-lag@name for a kind
    answered@FILE.jsonl  the questions of a file about the run's human translations (sqa questions make)

Without a file, the questions are the clozes of each human translation, without filters.  The reader is that of rules.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np

from sqa.core import ConfigError, Floats, NotComputable, QuestionTrace, code_of, compare_many
from sqa.core.significance import Interval, Mean, bootstrap, bootstrap_band, mean_curve
from sqa.metrics.measure import Family, MeanMetric, choices
from sqa.metrics.quality.facts import lexicon_digest
from sqa.questions.ask import EARLY, Answered, Asked, answers_of
from sqa.questions.files import QuestionFile, TextQuestion, read_questions, reference_digest
from sqa.questions.rules import Rules, clozes
from sqa.questions.texts import segment_of
from sqa.results import Frame, Table, defined, row_of

VERSION = 1  # increase when the same answers give other numbers
ALL = "all"
WITHIN = {"words": (0, 1, 2, 3, 5, 8, 12), "seconds": (0, 1, 2, 3, 5, 8, 12), "": ()}  # T of answered@T
Statistic = Callable[[Answered], tuple[float, float]]


def _statistics(unit: str) -> dict[str, Statistic]:
    """Return the measures of a log in this unit: an answer's part of the numerator and of the denominator."""
    timed: dict[str, Statistic] = {
        "early": lambda a: (a.outcome == "early", 1),
        "lag": lambda a: (0, 0) if a.lag is None else (a.lag, 1),
        "estimated": lambda a: (0, 0) if a.lag is None else (a.question.source is None, 1),
        **{f"answered@{t}": lambda a, t=t: (a.lag is not None and a.lag <= t, 1) for t in WITHIN[unit]},  # type: ignore[misc]
    }
    return {"answered": lambda a: (a.outcome == "answered", 1), **(timed if unit else {})}


def tables(asked: Asked) -> Iterator[tuple[str, str, Floats]]:
    """Yield (kind, measure, statistics of each segment (n, 2))."""
    for kind in kinds_of(asked):
        chosen = of_kind(asked, kind)
        for measure, statistic in _statistics(asked.system.unit).items():
            sums = [np.sum([statistic(a) for a in answers], axis=0) if answers else (0, 0) for answers in chosen]
            yield kind, measure, np.array(sums, dtype=np.float64)
    yield ALL, "invented", np.array(asked.invented, dtype=np.float64)


def signature(questions: QuestionFile, reader: str, unit: str) -> str:
    """Return everything besides the translation that changes the numbers."""
    return f"questions:{questions.digest}|reader:{reader}|right:stable|early:{EARLY[unit]:g}|version:{VERSION}"


def frame(systems: Sequence[Asked], questions: QuestionFile, reader: str, resamples: int) -> Frame:
    """Return the measures of systems; a measure without a value is left out."""
    rows = []
    for asked in systems:
        unit, signed = asked.system.unit, signature(questions, reader, asked.system.unit)
        for kind, measure, stats in tables(asked):
            try:
                interval = bootstrap(stats, Mean(measure), resamples)
            except NotComputable:
                continue
            row = row_of((asked.system.name, kind), measure, interval, unit if measure == "lag" else "0-1", signed)
            rows.append(replace(row, n=int(stats[:, 1].sum())))  # number of questions, or facts
    return Frame(("system", "kind"), rows)


def differences(systems: Sequence[Asked], resamples: int) -> Table:
    """Return the paired differences of all pairs of systems: A - B, its interval and two-sided p-value.

    Raises ConfigError for a single system, or systems with different units.
    """
    if len(systems) < 2 or len({asked.system.unit for asked in systems}) > 1:
        raise ConfigError("--compare: give two or more logs whose delays have the same unit")
    rows = []
    measured = [{(kind, name): stats for kind, name, stats in tables(asked)} for asked in systems]
    for (a, of_a), (b, of_b) in combinations(zip(systems, measured, strict=True), 2):
        keys = [key for key in of_a if of_a[key][:, 1].sum() and of_b[key][:, 1].sum()]
        metrics = [Mean(name) for _, name in keys]
        compared = compare_many([(of_a[key], of_b[key]) for key in keys], metrics, resamples)
        for (kind, name), c in zip(keys, compared, strict=True):
            rows.append((a.system.name, b.system.name, kind, name, c.diff, defined(c.low), defined(c.high), c.p, c.n))
    return Table(("a", "b", "kind", "measure", "diff", "low", "high", "p", "n"), rows)


def kinds_of(asked: Asked) -> list[str]:
    """Return the kinds of the questions, after ALL; only ALL if there is one kind."""
    kinds = sorted({answer.question.kind for answers in asked.answers for answer in answers})
    return [ALL, *(kinds if len(kinds) > 1 else ())]


def of_kind(asked: Asked, kind: str) -> list[list[Answered]]:
    """Return the answers to the questions of a kind, by segment."""
    return [[answer for answer in answers if kind in (ALL, answer.question.kind)] for answers in asked.answers]


def curve(asked: Asked, times: Sequence[float], kind: str = ALL, resamples: int = 1000) -> list[Interval]:
    """Return the share of the questions answered by each time after their source word, with its band."""
    stats = [
        [*(sum(a.lag is not None and a.lag <= t for a in answers) for t in times), len(answers)]
        for answers in of_kind(asked, kind)
    ]
    with np.errstate(invalid="ignore"):  # a resample may have no question of a rare kind
        return bootstrap_band(np.array(stats, dtype=np.float64), mean_curve, resamples)


def records(asked: Iterable[Asked]) -> Iterator[dict[str, object]]:
    """Yield every answer as plain values."""
    for each in asked:
        for answers in each.answers:
            yield from ({"system": each.system.name, **a.record(each.system.unit)} for a in answers)


# -------------------------------------------------------------------------------------------------------------- of runs

TARGET = "en"  # language of human translations without a file of questions


_ASKED_OF = (choices("about", "name", "number", "date"), choices("file", pattern=r".+\.jsonl"))


@Family("answered", "Questions answered", parameters=_ASKED_OF)
@dataclass(frozen=True, slots=True)
class RunAnswers(MeanMetric):
    """A metric of answers in runs; stats are those of `sqa ask`, (2,)."""

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
