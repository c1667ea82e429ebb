"""A client's session on an evaluation server as a model of the board: the server counted what was read, not the client.

The model's file is JSON lines: who answers, then what was written for each question, as a response of a model that does
not answer; the guesser and the buzzer answer here.

    {"session": "ann", "guesser": "bm25", "buzzer": "{name: mlp, model: bm25}"}
    {"id": "q", "answered": false, "steps": [{"sentence": 0, "token": "The", "g": 3, "ended": false, "erase": 0}, ...]}
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqa.core.errors import DataError
from sqa.core.trace import QuestionTrace, buzzes_rows, check_emissions, guesses_rows
from sqa.core.types import Emission, Question
from sqa.files.records import parse_json
from sqa.run.named import contestant_from
from sqa.run.pipeline import buzz, guess

KIND = "session"


def session_model(
    journal: Path, session: str, questions: Sequence[Question], guesser: str = "", buzzer: str = ""
) -> bytes:
    """The file of a model that is a finished session; `guesser` and `buzzer` are YAML as `contestant_from` takes them.

    The errors of `session_emissions` and of `contestant_from`.
    """
    from sqa_services.protocols.iwslt.questions import session_emissions

    contestant_from(guesser, buzzer)
    written = session_emissions(journal, session, questions)
    rows: list[Mapping[str, Any]] = [{"session": session, "guesser": guesser, "buzzer": buzzer}]
    for id, emissions in written.items():
        rows.append({"id": id, "answered": False, "steps": [dataclasses.asdict(e) for e in emissions]})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def problems_of(model: bytes, questions: Sequence[Question]) -> list[str]:
    """Why a session cannot be scored on these questions."""
    _, written = _parsed(model)
    missing = [question.id for question in questions if question.id not in written]
    return [f"the session is of other questions, {missing[0]} is not among them"] if missing else []


def answer(model: bytes, questions: Sequence[Question]) -> list[QuestionTrace]:
    """What the session wrote for these questions, with guesses and buzzes.  Another set's session: DataError."""
    if problems := problems_of(model, questions):
        raise DataError(problems[0])
    head, written = _parsed(model)
    guesser, buzzer = contestant_from(head["guesser"], head["buzzer"])
    if buzzer is None:
        raise DataError("session: without a buzzer there are no expected wins")
    traces = []
    for question in questions:
        emissions = tuple(Emission(**step) for step in written[question.id])
        check_emissions(question, emissions)
        id = question.id
        guesses = guesses_rows(guess(guesser, [question], {id: emissions}, _silent)).get(id, ())
        buzzes = buzzes_rows(buzz(buzzer, [question], {id: guesses}, _silent)).get(id, ())
        traces.append(QuestionTrace(question, emissions, guesses, buzzes))
    return traces


def _parsed(model: bytes) -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
    head, *rows = (parse_json(line) for line in model.decode().splitlines())
    return head, {row["id"]: row["steps"] for row in rows}


def _silent(_: int) -> None:
    """No progress bar."""
