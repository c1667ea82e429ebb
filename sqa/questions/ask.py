"""When a listener could answer: the moment from which a reader answers a question right from a translation so far.

A moment is an amount of source at which the text of the question's segment changed.  The answer must be right from this
moment to the end of the segment.  A reader that costs nothing reads every moment.  Any other reader reads the whole
segment, then moments by bisection, and last CHECKS later moments; a wrong answer there moves the search behind it.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqa.core import DataError
from sqa.metrics.quality.facts import judge
from sqa.questions.files import QuestionFile, TextQuestion, reference_digest
from sqa.questions.make import Reader
from sqa.questions.rules import words_of
from sqa.questions.texts import Segment, Translated

CHECKS = 2  # later moments that are checked after a bisection
EARLY = {"words": 1.0, "seconds": 1.0, "": 0.0}  # an answer this long before its source word is a guess
COPIED = 0.5  # share of a segment's words that stand in the source alone, from which the segment is not translated
Outcome = Literal["answered", "early", "copied", "never"]
Search = Generator[int, bool | None, int | None]


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and its answer in a translation."""

    question: TextQuestion
    outcome: Outcome
    at: float | None  # source read when the answer is right for good; None: never, or unknown
    own: float | None  # source read when the question's own source word has been read; None: unknown
    word: int | None  # the same moments in source words, as far as they are known
    readings: int  # texts that were read

    @property
    def lag(self) -> float | None:
        """Source between the question's own source word and its answer; None unless it is answered."""
        return None if self.at is None or self.own is None or self.outcome != "answered" else self.at - self.own

    def record(self, unit: str) -> dict[str, Any]:
        """Return the answer as plain values."""
        q = self.question
        about = {"segment": q.segment, "question": q.question, "answers": list(q.answers), "kind": q.kind}
        second = self.at if unit == "seconds" else None
        found = {"outcome": self.outcome, "word": self.word, "second": second, "lag": self.lag}
        return {**about, **found, "readings": self.readings}


@dataclass(frozen=True, slots=True)
class Asked:
    """All answers in a system's translation, by segment."""

    system: Translated
    answers: Sequence[Sequence[Answered]]
    invented: Sequence[tuple[int, int]]  # of each segment: facts in no other text, and facts


def pairs_of(system: Translated, questions: QuestionFile) -> list[tuple[TextQuestion, Segment]]:
    """Return each question with its segment, in order of segments.

    Raises DataError if the questions are about another reference, or another number of segments.
    """
    if len(system.segments) != questions.segments:
        raise DataError(
            f"{system.name}: {len(system.segments)} segments, but the questions are of {questions.segments}"
        )
    pairs = [
        (q, segment) for segment, about in zip(system.segments, questions.by_segment(), strict=True) for q in about
    ]
    for q, segment in pairs:
        if q.reference and segment.reference and reference_digest(segment.reference) != q.reference:
            raise DataError(f"{segment.where}: the questions are of another reference; make them from this log's")
    return pairs


def ask(system: Translated, questions: QuestionFile, reader: Reader, every_word: bool = False) -> Asked:
    """Ask all questions of a translation; raises DataError as `pairs_of` does."""
    answers: list[list[Answered]] = [[] for _ in system.segments]
    for answer in answers_of(pairs_of(system, questions), system.unit, reader, every_word):
        answers[answer.question.segment].append(answer)
    return Asked(system, answers, [_invented(segment, questions.pair) for segment in system.segments])


def answers_of(
    pairs: Sequence[tuple[TextQuestion, Segment]], unit: str, reader: Reader, every_word: bool = False
) -> list[Answered]:
    """Return the answer to each question about the translation of its segment."""
    found = _all(pairs, reader, every_word or reader.every_word)
    return [_answered(*pair, unit, *each) for pair, each in zip(pairs, found, strict=True)]


def _all(
    pairs: Sequence[tuple[TextQuestion, Segment]], reader: Reader, every_word: bool
) -> list[tuple[int | None, int]]:
    """Return, for each question, its first right moment (None: never) and the number of readings.

    All searches go on together, so that a reader gets many texts at a time.
    """
    searches = [_backwards(len(s.moments)) if every_word else bisected(len(s.moments)) for _, s in pairs]
    found: dict[int, int | None] = {}
    readings = Counter[int]()
    replies: dict[int, bool | None] = dict.fromkeys(range(len(pairs)))  # search -> whether its last moment is right
    while replies:
        moments: dict[int, int] = {}
        for number, reply in replies.items():
            try:
                moments[number] = searches[number].send(reply)
            except StopIteration as end:
                found[number] = end.value
        asked = [(pairs[n][0], pairs[n][1].text(pairs[n][1].moments[moment][1])) for n, moment in moments.items()]
        replies = dict(zip(moments, reader.right(asked), strict=True)) if moments else {}
        readings.update(moments.keys())
    return [(found[number], readings[number]) for number in range(len(pairs))]


def _backwards(moments: int) -> Search:
    """Yield moments from the last one, while they are right; return the earliest of these."""
    first = None
    for moment in range(moments - 1, -1, -1):
        if not (yield moment):
            break
        first = moment
    return first


def bisected(moments: int) -> Search:
    """Yield the moments to read, each once; return the first one from which all answers that were read are right."""
    if not moments or not (yield moments - 1):
        return None
    wrong, right = -1, moments - 1
    read = {right}  # moments with a right answer
    while True:
        while right - wrong > 1:
            middle = (wrong + right) // 2
            if middle in read or (yield middle):
                right = middle
                read.add(middle)
            else:
                wrong = middle
        later = {right + (moments - 1 - right) * n // (CHECKS + 1) for n in range(1, CHECKS + 1)}
        for moment in sorted(later - read, reverse=True):
            if not (yield moment):
                wrong, right = moment, moments - 1
                break
            read.add(moment)
        else:
            return right


def _answered(question: TextQuestion, segment: Segment, unit: str, moment: int | None, readings: int) -> Answered:
    own, known = _own(question, segment, unit)
    if moment is None:
        return Answered(question, "never", None, own, None, readings)
    if _copied(segment):
        return Answered(question, "copied", None, own, None, readings)
    at = segment.moments[moment][0] if unit else None
    early = known and at is not None and own is not None and at < own - EARLY[unit]
    word = None
    if at is not None:
        word = int(at) if unit == "words" else sum(position <= at for position in segment.positions) or None
    return Answered(question, "early" if early else "answered", at, own, word, readings)


def _own(question: TextQuestion, segment: Segment, unit: str) -> tuple[float | None, bool]:
    """Return the source read when the question's source word has been read, and whether that word is known."""
    if not unit:
        return None, False
    positions = segment.positions
    if question.source is not None and question.source < len(positions) == len(words_of(" ".join(segment.source))):
        return positions[question.source], True
    if question.source is not None and unit == "words":
        return question.source + 1.0, True
    return question.share * segment.length, question.source is not None


def _copied(segment: Segment) -> bool:
    """Return whether a translation mostly has words of the source that the reference does not have."""
    words = [word.casefold() for word in segment.words]
    source = {word.casefold() for word in segment.source}
    source -= {word.casefold() for word in (segment.reference or "").split()}
    return bool(words) and sum(word in source for word in words) > COPIED * len(words)


def _invented(segment: Segment, pair: tuple[str, str]) -> tuple[int, int]:
    """Return the numbers of the translation's facts that neither reference nor source has, and of all its facts."""
    if not segment.reference:
        return 0, 0
    judged = judge(segment.source, segment.words, words_of(segment.reference), *pair)
    return len(judged.invented), len(judged.written)
