"""Submissions to a shared task on simultaneous question answering: validation and scores.

A submission has one JSON object per line, for every target word of every question of a set:

    {"question": "mini-001", "step": 0, "token": "The", "g": 3, "guess": "Peru", "buzz": false}

`g` counts the source words of the whole question that were read.  `guess` and `buzz` are the system's answer at this
step and whether it would buzz.  Either every row has them or no row has them; without them there is no EW.  A question
without any target word has one row with step 0 and an empty token, so that truncated files are detected.  The first
problem of every line is reported, up to 10,000 problems.
"""

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.json import schema as json_schema

from sqa.core import Buzz, ConfigError, DataError, Guess, NotComputable, Question, QuestionTrace, on_a_screen
from sqa.core.answers import unwritable
from sqa.core.trace import by_sentence
from sqa.data.datasets import load_questions
from sqa.files import JOIN, check_words, converted, lines, parse_json
from sqa.files.target_words import oddity
from sqa.metrics import build, collect
from sqa.results import Table, show

METRICS = ("ew", "oracle-ew", "accuracy", "bleu", "chrf", "al", "laal", "ap", "dal")
SHOWN = 20  # problems printed; further problems are counted
LONGEST = 200_000  # maximum number of characters of a line
MOST_PROBLEMS = 10_000  # number of problems at which reading stops


class Row(Struct, forbid_unknown_fields=True):
    """One line of a submission."""

    question: Annotated[str | int, Meta(description="the question's id")]
    step: Annotated[int, Meta(ge=0, description="0, 1, 2, ... within the question")]
    token: Annotated[str, Meta(description="a target word without spaces; empty: nothing was written")]
    g: Annotated[int, Meta(ge=0, description="source words of the question that were read; must not decrease")]
    guess: Annotated[str | UnsetType, Meta(description="the page that would be answered; empty: none")] = UNSET
    buzz: Annotated[bool | UnsetType, Meta(description="whether the system would buzz here; needs guess")] = UNSET

    def __post_init__(self) -> None:
        if self.token and self.token.split() != [self.token]:
            raise ValueError(f"token: one word without spaces expected, got {self.token[:40]!r}")
        if odd := oddity(self.token):
            raise ValueError(f"token: {self.token[:40]!r} has {odd}; write the words of the translation only")
        if (self.guess is UNSET) != (self.buzz is UNSET):
            raise ValueError("guess, buzz: a row has both or neither")
        if self.guess and unwritable(self.guess):
            raise ValueError(f"guess: a page title without control characters expected, got {self.guess[:40]!r}")


Rows = Mapping[str, Sequence[tuple[int, Row]]]  # question id -> its rows, each with the number of its line


def main(submission: str, questions: str, as_json: bool = False, schema: bool = False) -> int:
    """Check and score a submission; return 0, or 1 after listing the problems.

    Raises DataError if the file is not UTF-8 text.
    """
    if schema:
        print(json.dumps(json_schema(Row), indent=2))
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
    extra = (each for id, of_question in rows.items() if id not in ids for each in of_question)
    problems.extend(f"{n}: question: the set has no {row.question!r}" for n, row in islice(extra, MOST_PROBLEMS))
    return fitted(rows, torn, questions, problems)


def rows_of(written: Iterable[str], problems: list[str]) -> tuple[Rows, set[str]]:
    """Return the rows by question id, and the ids of questions with an invalid row, whose steps are not checked."""
    rows: dict[str, list[tuple[int, Row]]] = {}
    torn: set[str] = set()
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
        try:
            row = converted(str(number), value, Row)
            rows.setdefault(str(row.question), []).append((number, row))
        except DataError as error:
            problems.append(str(error))
            if isinstance(value, Mapping):
                torn.add(str(value.get("question")))
    try:
        check_words("0: token", [row.token for of_question in rows.values() for _, row in of_question], None, JOIN)
    except DataError as error:  # the share of words that begin with Ġ
        problems.append(str(error))
    return rows, torn


def fitted(
    rows: Rows, torn: Collection[str], questions: Sequence[Question], problems: list[str]
) -> list[QuestionTrace]:
    """Return the traces of these questions' rows, ignoring other rows; append every problem to `problems`."""
    answered = {row.guess is not UNSET for question in questions for _, row in rows.get(question.id, ())}
    if len(answered) > 1:
        problems.append("0: guess, buzz: some rows have them and some do not")
    of_each = (_problems(question, rows.get(question.id, ()), question.id in torn) for question in questions)
    problems.extend(islice(chain.from_iterable(of_each), MOST_PROBLEMS))
    if problems:
        return []
    return [_trace(question, [row for _, row in rows[question.id]], True in answered) for question in questions]


def _problems(question: Question, rows: Sequence[tuple[int, Row]], torn: bool) -> Iterator[str]:
    """Yield the problems of the rows of one question."""
    if not rows and not torn:
        yield f"0: question {question.id}: has no rows (without target words, write one row with an empty token)"
    g, size = 0, len(question.words)
    for step, (number, row) in enumerate(rows):
        if row.step != step and not torn:
            yield f"{number}: step: {question.id} is at step {step}, got {row.step}"
            torn = True  # report each mistake once
        if not g <= row.g <= size:
            yield f"{number}: g: must be in {g}..{size} (words of {question.id} read, never decreasing), got {row.g}"
        else:
            g = row.g
        if not row.token and len(rows) > 1:
            yield f"{number}: token: empty, although {question.id} has other rows"


def _trace(question: Question, rows: Sequence[Row], answered: bool) -> QuestionTrace:
    """Return the trace of a question: a word written after g words belongs to the sentence that holds word g."""
    written = [row for row in rows if row.token]
    emissions = tuple(by_sentence(question, ((row.token, row.g, False, 0) for row in written)))
    if not answered:
        return QuestionTrace(question, emissions)
    guesses = tuple((Guess(row.guess, 1.0),) if row.guess else () for row in written)
    buzzes = tuple(Buzz(float(bool(row.buzz)), bool(row.buzz)) for row in written)
    return QuestionTrace(question, emissions, guesses, buzzes)
