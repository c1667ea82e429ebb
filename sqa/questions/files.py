"""Files of questions: a header, then one question per line, both JSON objects.

{"questions": 2, "segments": 1, "maker": "rules", "pair": "es-en", "dropped": {"repeated": 1}, ...}
{"segment": 0, "question": "In ____ he left London.", "answers": ["1830"], "kind": "number", "maker": "rules",
 "span": [1, 2], "source": 1, "share": 0.3, "reference": "5f0c..."}
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from sqa.core import ConfigError, DataError, certain, code_of
from sqa.files import bytes_digest, converted, numbered_lines, write_text

VERSION = 2  # increase when the same texts give other questions
DIGITS = 12  # digits of digests
Index = Annotated[int, Meta(ge=0)]


class TextQuestion(Struct, frozen=True):
    """A question about a segment of a reference translation."""

    segment: Index
    question: str
    answers: tuple[str, ...]  # right answers; the first one stands in the reference
    kind: str  # "name", "number", "date", "role", "negation", or a kind of the model that made the question
    maker: str
    span: tuple[Index, Index]  # the answer's words in the reference: first, and one past the last
    source: Index | None = None  # source word that completes the answer; None: unknown
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0  # share of the source's characters up to the answer
    reference: str = ""  # digest of the segment's reference


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """The questions of a text, and how they were made."""

    header: Mapping[str, Any]
    questions: Sequence[TextQuestion]

    @property
    def segments(self) -> int:
        return int(self.header["segments"])

    @property
    def pair(self) -> tuple[str, str]:
        """Codes of source and target; the questions are in the target language."""
        return languages(self.header["pair"])

    @property
    def digest(self) -> str:
        """Digest of the questions, for signatures."""
        return bytes_digest("\n".join(map(_line, self.questions)).encode())[:DIGITS]

    def text(self) -> str:
        """Return the content of the file."""
        return "".join(f"{line}\n" for line in (_json(self.header), *map(_line, self.questions)))

    def write(self, path: Path) -> None:
        """Write the file."""
        write_text(path, self.text())

    def by_segment(self) -> list[list[TextQuestion]]:
        """Return the questions of each segment."""
        questions: list[list[TextQuestion]] = [[] for _ in range(self.segments)]
        for question in self.questions:
            questions[question.segment].append(question)
        return questions


def read_questions(path: Path) -> QuestionFile:
    """Read a file of questions.  Raises DataError "FILE:LINE: ..." if it is damaged."""
    rows = numbered_lines(path)
    number, header = next(rows, (1, {}))
    if not isinstance(header.get("segments"), int) or not isinstance(header.get("pair"), str):
        raise DataError(f"{path}:{number}: not a header with `segments` and `pair`; make it with sqa questions make")
    questions = [converted(f"{path}:{number}", row, TextQuestion) for number, row in rows]
    if len(questions) != header.get("questions"):
        raise DataError(
            f"{path}: {len(questions)} questions, but the header says {header.get('questions')}; truncated?"
        )
    if wrong := next((q for q in questions if q.segment >= header["segments"] or not q.answers), None):
        raise DataError(f"{path}: the question {wrong.question!r:.60} has no segment or no answer")
    return QuestionFile(header, questions)


def languages(pair: str) -> tuple[str, str]:
    """Return the codes of source and target, as in es-en; the source may be unknown (-en).

    Raises ConfigError for anything but two languages.
    """
    source, dash, into = pair.partition("-")
    if not dash or not certain(into) or (source and not certain(source)):
        raise ConfigError(f"--pair: expected two languages, such as es-en, got {pair!r}")
    return code_of(source) if source else "", code_of(into)


def reference_digest(reference: str) -> str:
    """Return the digest of a reference, by which a question recognises its segment."""
    return bytes_digest(" ".join(reference.split()).encode())[:DIGITS]


def _line(question: TextQuestion) -> str:
    return _json(structs.asdict(question))


def _json(value: Mapping[str, Any] | Iterable[Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
