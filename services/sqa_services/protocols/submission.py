"""Submissions to a shared task on simultaneous question answering: checked in full, then scored.

One JSON object a line, for every target word of every question of a set:

    {"question": "mini-001", "step": 0, "token": "The", "g": 3, "guess": "Peru", "buzz": false}

`g` counts the source words of the whole question that had been read; `guess` and `buzz` are the system's answer at
this step and whether it would buzz: in every row, or in none (then there is no EW).  Nothing written for a question is
one row with step 0 and an empty token, so that a file that is cut off is noticed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, DataError, NotComputable, on_a_screen
from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Emission, Guess, Question
from sqa.data.datasets import load_questions
from sqa.files.records import parse_json
from sqa.metrics import build, collect
from sqa_services.protocols.json_shape import Shape

METRICS = ("ew", "oracle-ew", "accuracy", "bleu", "chrf", "al", "laal", "ap", "dal")
SHOWN = 20  # problems printed; the rest is counted
LONGEST = 200_000  # characters of a line
MOST_PROBLEMS = 10_000  # then a submission is read no further: who sends it shall not decide how long it takes
BLANKS = r"\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # as `str.split` has them
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "One line of a submission",
    "type": "object",
    "required": ["question", "step", "token", "g"],
    "additionalProperties": False,
    "dependentRequired": {"guess": ["buzz"], "buzz": ["guess"]},
    "properties": {
        "question": {"type": "string", "description": "the question's id"},
        "step": {"type": "integer", "minimum": 0, "description": "0, 1, 2, ... within the question"},
        "token": {
            "type": "string",
            "title": "one word without blanks",
            "description": "a target word; empty: nothing was written",
            "pattern": f"^[^{BLANKS}]*$",
        },
        "g": {"type": "integer", "minimum": 0, "description": "source words of the question read, never falling"},
        "guess": {
            "type": "string",
            "title": "a page title without control characters",
            "description": "the page that would be answered; empty: none",
            "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
        },
        "buzz": {"type": "boolean", "description": "whether the system would buzz here"},
    },
}
SHAPE = Shape(SCHEMA)


@dataclass(frozen=True, slots=True)
class Row:
    """One line that keeps the schema."""

    line: int
    question: str
    step: int
    token: str
    g: int
    guess: str | None = None
    buzz: bool | None = None


def main(submission: str, questions: str, as_json: bool = False, schema: bool = False) -> int:
    """Checks and scores; 0, or 1 after every problem was listed."""
    if schema:
        print(json.dumps(SCHEMA, indent=2))
        return 0
    problems: list[str] = []
    traces = read(Path(submission), load_questions(questions), problems)
    if problems:
        if as_json:
            print(json.dumps({"valid": False, "problems": problems, "scores": []}, indent=2, ensure_ascii=False))
        else:
            for problem in problems[:SHOWN]:
                print(f"sqa: {submission}:{on_a_screen(problem)}", file=sys.stderr)
            if len(problems) > SHOWN:
                print(f"sqa: {submission}: and {len(problems) - SHOWN} more", file=sys.stderr)
        return 1
    found = list(scores(traces))
    if as_json:
        print(json.dumps({"valid": True, "problems": [], "scores": found}, indent=2, ensure_ascii=False))
        return 0
    print("metric\tvalue\tsignature")
    for row in found:
        print(f"{row['metric']}\t{'' if row['value'] is None else row['value']}\t{row['signature']}")
        if row["refusal"]:
            print(f"sqa: {row['metric']}: no value: {row['refusal']}", file=sys.stderr)
    return 0


def scores(traces: Sequence[QuestionTrace]) -> Iterator[dict[str, Any]]:
    """Every metric's value, or why it has none."""
    for metric in build(METRICS):
        value, refusal = None, None
        try:
            value = metric.score(collect(traces, metric).sum(axis=0))
        except NotComputable as error:
            refusal = str(error)
        yield {"metric": metric.name, "value": value, "refusal": refusal, "signature": metric.signature()}


def read(path: Path, questions: Sequence[Question], problems: list[str]) -> list[QuestionTrace]:
    """The traces of a submission's file, as `traces_of` has them.  Not UTF-8: DataError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    return traces_of(text, questions, problems)


def traces_of(text: str, questions: Sequence[Question], problems: list[str]) -> list[QuestionTrace]:
    """The traces of a submission, in the order of `questions`; every problem is added to `problems`."""
    if not questions:
        raise ConfigError("--questions: the set has no questions")
    rows, torn = rows_of(text, problems)
    known = {question.id for question in questions}
    strange = (row for id, found in rows.items() if id not in known for row in found)
    problems.extend(f"{row.line}: question: the set has no {row.question!r}" for row in islice(strange, MOST_PROBLEMS))
    return fitted(rows, torn, questions, problems)


def rows_of(text: str, problems: list[str]) -> tuple[dict[str, list[Row]], set[object]]:
    """question -> its rows; and the questions with a row that cannot be read, whose steps are therefore not counted."""
    rows: dict[str, list[Row]] = {}
    torn: set[object] = set()
    for row in _rows(text, problems, torn):
        rows.setdefault(row.question, []).append(row)
    return rows, torn


def fitted(
    rows: Mapping[str, Sequence[Row]], torn: Collection[object], questions: Sequence[Question], problems: list[str]
) -> list[QuestionTrace]:
    """The traces of these questions' rows; those of others are left aside.  Every problem is added to `problems`."""
    answered = {row.guess is not None for question in questions for row in rows.get(question.id, ())}
    if len(answered) > 1:
        problems.append("0: guess, buzz: some rows have them and some do not")
    each = (_problems(question, rows.get(question.id, ()), question.id in torn) for question in questions)
    problems.extend(islice(chain.from_iterable(each), MOST_PROBLEMS))
    if problems:
        return []
    return [_trace(question, rows[question.id], True in answered) for question in questions]


def _rows(text: str, problems: list[str], torn: set[object]) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if len(problems) >= MOST_PROBLEMS:
            return
        if not line.strip():
            continue
        if len(line) > LONGEST:
            problems.append(f"{number}: a line may have {LONGEST} characters, this one has {len(line)}")
            continue
        try:
            found = parse_json(line)
        except ValueError as error:
            problems.append(f"{number}: {error}: {line[:60]!r}")
            continue
        wrong = SHAPE.problems(found)
        problems.extend(f"{number}: {problem}" for problem in wrong)
        if not wrong:
            yield Row(number, **found)
        elif isinstance(found, Mapping) and isinstance(found.get("question"), str):
            torn.add(found["question"])


def _problems(question: Question, rows: Sequence[Row], torn: bool) -> Iterator[str]:
    """What is wrong with the rows of one question."""
    if not rows and not torn:
        yield f"0: question {question.id}: has no rows (nothing written is one row with an empty token)"
    g, size = 0, len(question.words)
    for step, row in enumerate(rows):
        if row.step != step and not torn:
            yield f"{row.line}: step: {question.id} is at step {step}, got {row.step}"
            torn = True  # one slip is told once
        if not g <= row.g <= size:
            yield f"{row.line}: g: must be in {g}..{size} (words of {question.id} read, never falling), got {row.g}"
        else:
            g = row.g
        if not row.token and len(rows) > 1:
            yield f"{row.line}: token: empty, although {question.id} has other rows"


def _trace(question: Question, rows: Sequence[Row], answered: bool) -> QuestionTrace:
    """The inverse of equation 1: a word written after g words belongs to the sentence that holds word g."""
    ends = list(accumulate(len(sentence) for sentence in question.sentences))
    written = [row for row in rows if row.token]
    emissions = []
    for row in written:
        sentence = next(i for i, end in enumerate(ends) if row.g <= end)
        before = ends[sentence - 1] if sentence else 0
        emissions.append(Emission(sentence, row.token, row.g - before, False))
    if not answered:
        return QuestionTrace(question, tuple(emissions))
    guesses = tuple((Guess(row.guess, 1.0),) if row.guess else () for row in written)
    buzzes = tuple(Buzz(float(bool(row.buzz)), bool(row.buzz)) for row in written)
    return QuestionTrace(question, tuple(emissions), guesses, buzzes)
