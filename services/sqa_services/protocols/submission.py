"""Submissions to a shared task on simultaneous question answering: validation, which reports all problems, and scores.

A submission has one JSON object per line, for every target word of every question of a set:

    {"question": "mini-001", "step": 0, "token": "The", "g": 3, "guess": "Peru", "buzz": false}

`g` counts the source words of the whole question that were read.  `guess` and `buzz` are the system's answer at this
step and whether it would buzz.  Either every row has them or no row has them; without them there is no EW.  A question
without any target word has one row with step 0 and an empty token, so that truncated files are detected.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sqa.core.errors import ConfigError, DataError, NotComputable, on_a_screen
from sqa.core.registry import did_you_mean
from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Emission, Guess, Question
from sqa.data.datasets import load_questions
from sqa.files.records import lines, parse_json
from sqa.files.target_words import JOIN, check_words, oddity
from sqa.metrics import build, collect
from sqa.results import Table, show

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

METRICS = ("ew", "oracle-ew", "accuracy", "bleu", "chrf", "al", "laal", "ap", "dal")
SHOWN = 20  # problems printed; further problems are counted
LONGEST = 200_000  # maximum number of characters of a line
MOST_PROBLEMS = 10_000  # number of problems at which reading stops
BLANKS = r"\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # whitespace of `str.split`


class Line(BaseModel):
    """One line of a submission."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "dependentRequired": {"guess": ["buzz"], "buzz": ["guess"]},
        },
    )
    question: Annotated[str, Field(description="the question's id", json_schema_extra={"type": ["string", "integer"]})]
    step: Annotated[int, Field(ge=0, description="0, 1, 2, ... within the question")]
    token: Annotated[
        str,
        Field(
            title="one word without spaces",
            description="a target word; empty: nothing was written",
            pattern=f"^[^{BLANKS}]*$",
        ),
    ]
    g: Annotated[int, Field(ge=0, description="source words of the question that were read; must not decrease")]
    guess: Annotated[
        str,
        Field(
            title="a page title without control characters",
            description="the page that would be answered; empty: none",
            pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
        ),
    ] = ""
    buzz: Annotated[bool, Field(description="whether the system would buzz here")] = False


@dataclass(frozen=True, slots=True)
class Row:
    """A line that fits the schema; it takes a quarter of the memory of a `Line`."""

    line: int
    question: str
    step: int
    token: str
    g: int
    guess: str | None = None
    buzz: bool | None = None


def shape_problems(model: type[BaseModel], value: object) -> list[str]:
    """Return every reason why a JSON value does not fit a model, as "field: expected, got"."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        return [_problem(model, details) for details in error.errors(include_url=False)]
    return []


def _problem(model: type[BaseModel], details: ErrorDetails) -> str:
    """Return the message for a problem; the path ["steps", 3, "g"] is written as steps[3].g."""
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in details["loc"]).removeprefix(".")
    match details["type"]:
        case "model_type":
            return f"{path}: expected an object".removeprefix(": ")
        case "missing":
            return f"{path}: is missing"
        case "extra_forbidden":
            return f"{path}: no such field{did_you_mean(str(details['loc'][-1]), model.model_fields)}"
        case "string_pattern_mismatch":
            return f"{path}: {model.model_fields[path].title} expected, got {details['input']!r}"
    return f"{path}: {details['msg']}, got {details['input']!r}"


def main(submission: str, questions: str, as_json: bool = False, schema: bool = False) -> int:
    """Check and score a submission; return 0, or 1 after listing every problem.

    Raises DataError if the file is not UTF-8 text.
    """
    if schema:
        print(json.dumps(Line.model_json_schema(), indent=2))
        return 0
    problems: list[str] = []
    traces = traces_of(lines(Path(submission)), load_questions(questions), problems)
    rows = [] if problems else list(scores(traces))
    if as_json:
        result = {"valid": not problems, "problems": problems, "scores": rows}
        print(json.dumps(result, indent=2, ensure_ascii=False))
    elif problems:
        for problem in problems[:SHOWN]:
            print(f"sqa: {submission}:{on_a_screen(problem)}", file=sys.stderr)
        if len(problems) > SHOWN:
            print(f"sqa: {submission}: and {len(problems) - SHOWN} more", file=sys.stderr)
    else:
        columns = ("metric", "value", "signature")
        cells = [[str("" if row[name] is None else row[name]) for name in columns] for row in rows]
        show(Table(columns, cells))
        for row in rows:
            if row["refusal"]:
                print(f"sqa: {row['metric']}: no value: {row['refusal']}", file=sys.stderr)
    return 1 if problems else 0


def scores(traces: Sequence[QuestionTrace]) -> Iterator[dict[str, Any]]:
    """Yield every metric's value, or the reason why it is missing."""
    for metric in build(METRICS):
        row: dict[str, Any] = {"metric": metric.name, "value": None, "refusal": None, "signature": metric.signature()}
        try:
            row["value"] = metric.score(collect(traces, metric).sum(axis=0))
        except NotComputable as error:
            row["refusal"] = str(error)
        yield row


def traces_of(written: Iterable[str], questions: Sequence[Question], problems: list[str]) -> list[QuestionTrace]:
    """Return the traces of a submission's lines, in the order of `questions`; append every problem to `problems`."""
    if not questions:
        raise ConfigError("--questions: the set has no questions")
    rows, torn = rows_of(written, problems)
    ids = {question.id for question in questions}
    extra = (row for id, of_question in rows.items() if id not in ids for row in of_question)
    problems.extend(f"{row.line}: question: the set has no {row.question!r}" for row in islice(extra, MOST_PROBLEMS))
    return fitted(rows, torn, questions, problems)


def rows_of(written: Iterable[str], problems: list[str]) -> tuple[dict[str, list[Row]], set[object]]:
    """Return the rows by question id, and the ids of questions with an invalid row, whose steps are not checked."""
    rows: dict[str, list[Row]] = {}
    torn: set[object] = set()
    for number, line in enumerate(written, start=1):
        if len(problems) >= MOST_PROBLEMS:
            break
        if not line.strip():
            continue
        if len(line) > LONGEST:
            problems.append(f"{number}: a line may have {LONGEST} characters, this one has {len(line)}")
            continue
        try:
            value = parse_json(line, whole=True)
        except ValueError as error:
            problems.append(f"{number}: {error}: {line[:60]!r}")
            continue
        if isinstance(value, dict) and type(value.get("question")) is int:
            value["question"] = str(value["question"])  # files of questions have text ids
        wrong = shape_problems(Line, value)
        if isinstance(value, Mapping) and ("guess" in value) != ("buzz" in value):
            wrong.append("guess, buzz: a row has both or neither")
        if not wrong and (odd := oddity(value["token"])):
            wrong = [f"token: {value['token'][:40]!r} has {odd}; write the words of the translation only"]
        problems.extend(f"{number}: {problem}" for problem in wrong)
        if not wrong:
            rows.setdefault(value["question"], []).append(Row(number, **value))
        elif isinstance(value, Mapping) and isinstance(value.get("question"), str):
            torn.add(value["question"])
    try:
        check_words("0: token", [row.token for of_question in rows.values() for row in of_question], None, JOIN)
    except DataError as error:  # the share of words that begin with Ġ
        problems.append(str(error))
    return rows, torn


def fitted(
    rows: Mapping[str, Sequence[Row]], torn: Collection[object], questions: Sequence[Question], problems: list[str]
) -> list[QuestionTrace]:
    """Return the traces of these questions' rows, ignoring other rows; append every problem to `problems`."""
    answered = {row.guess is not None for question in questions for row in rows.get(question.id, ())}
    if len(answered) > 1:
        problems.append("0: guess, buzz: some rows have them and some do not")
    each = (_problems(question, rows.get(question.id, ()), question.id in torn) for question in questions)
    problems.extend(islice(chain.from_iterable(each), MOST_PROBLEMS))
    if problems:
        return []
    return [_trace(question, rows[question.id], True in answered) for question in questions]


def _problems(question: Question, rows: Sequence[Row], torn: bool) -> Iterator[str]:
    """Yield the problems of the rows of one question."""
    if not rows and not torn:
        yield f"0: question {question.id}: has no rows (without target words, write one row with an empty token)"
    g, size = 0, len(question.words)
    for step, row in enumerate(rows):
        if row.step != step and not torn:
            yield f"{row.line}: step: {question.id} is at step {step}, got {row.step}"
            torn = True  # report each mistake once
        if not g <= row.g <= size:
            yield f"{row.line}: g: must be in {g}..{size} (words of {question.id} read, never decreasing), got {row.g}"
        else:
            g = row.g
        if not row.token and len(rows) > 1:
            yield f"{row.line}: token: empty, although {question.id} has other rows"


def _trace(question: Question, rows: Sequence[Row], answered: bool) -> QuestionTrace:
    """Return the trace of a question by inverting equation 1 (`sqa.core.trace`).

    A word written after g words belongs to the sentence that holds word g.
    """
    ends = list(accumulate(len(sentence) for sentence in question.sentences))
    written = [row for row in rows if row.token]
    emissions = []
    for row in written:
        sentence = bisect_left(ends, row.g)  # first sentence that ends at word g or later
        emissions.append(Emission(sentence, row.token, row.g - [0, *ends][sentence], False))
    if not answered:
        return QuestionTrace(question, tuple(emissions))
    guesses = tuple((Guess(row.guess, 1.0),) if row.guess else () for row in written)
    buzzes = tuple(Buzz(float(bool(row.buzz)), bool(row.buzz)) for row in written)
    return QuestionTrace(question, tuple(emissions), guesses, buzzes)
