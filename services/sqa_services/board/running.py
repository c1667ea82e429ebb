"""Models that run on the board: the config of a run, or a client's session.

A run is executed up to its buzzes, in this process or on the workers of a scheduler.  A session took place on an
evaluation server, which counted the words that the client read.  Its file is JSON lines: first the guesser and the
buzzer, which the board runs, then the words written for each question.

    {"session": "ann", "guesser": "bm25", "buzzer": "{name: mlp, model: bm25}"}
    {"id": "q", "answered": false, "steps": [{"sentence": 0, "token": "The", "g": 3, "ended": false, "erase": 0}, ...]}
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqa.core.errors import DataError
from sqa.core.trace import QuestionTrace, buzzes_rows, guesses_rows
from sqa.core.types import Emission, Question
from sqa.files.records import parse_json
from sqa.files.store import Stage, Store, Traces, blocks_of
from sqa.pipeline import engine
from sqa.pipeline.config import RunConfig
from sqa.pipeline.named import contestant_from
from sqa.pipeline.parts import Parts
from sqa.pipeline.scheduler import Scheduler, current
from sqa_services.board.files import as_lines
from sqa_services.board.metrics import Job

T = TypeVar("T")
UNTIL = "buzz"  # the board computes the scores itself
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


# ------------------------------------------------------------------------------------------------- a run's config


def answer(config: RunConfig, questions: Sequence[Question], work: Path) -> tuple[Sequence[QuestionTrace], Job]:
    """Return the traces of a run, and its duration and memory; the store below `work` keeps finished stages.

    Inside `scheduled(...)` other processes compute the blocks, so duration and memory are unknown.
    """
    scheduler = current()
    if scheduler is not None:
        return _spread(scheduler, config, questions), Job(len(questions), None, None)
    measured, start = _peak_cleared(), time.perf_counter()
    result = engine.run(config, Store(work), questions=questions, until=UNTIL, progress=False)
    seconds, peak = time.perf_counter() - start, _peak() if measured else None
    blocks = len(blocks_of(result.questions, engine.BLOCK_SIZE))
    whole = all(computed == blocks for computed in result.made.values())  # the run used no stored block
    return result.traces, Job(len(questions), seconds if whole else None, peak)


def _spread(scheduler: Scheduler, config: RunConfig, questions: Sequence[Question]) -> Traces:
    """Return traces computed by a scheduler's workers, which read the questions from the store."""
    from sqa.pipeline import spread

    given = scheduler.store.keep(questions)
    job = spread.Job(config, partial(_stages, config, given), UNTIL, given)
    [(_, stages)] = spread.spread([job], scheduler.store)
    return Traces(scheduler.store, blocks_of(questions, engine.BLOCK_SIZE), stages)


def _stages(config: RunConfig, given: str, store: Store, _: Parts) -> dict[str, Stage]:
    """Return the stages of a run; a worker calls this function when all blocks are in the store."""
    from sqa.pipeline.blocks import workshop_of

    return {stage.name: stage for stage in workshop_of(store).plan(config, UNTIL, given).stages}


def _peak_cleared() -> bool:
    """Reset the peak memory of this process (proc(5)); return False if Linux does not support it."""
    try:
        return bool(_CLEAR.write_text("5"))
    except OSError:
        return False


def _peak() -> int | None:
    """Return the peak memory in bytes since the reset, or None if Linux does not report it."""
    match = re.search(r"^VmHWM:\s*(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


# ------------------------------------------------------------------------------------------------------ a session


def session_model(
    journal: Path, session: str, questions: Sequence[Question], guesser: str = "", buzzer: str = ""
) -> bytes:
    """Return the model file of a finished session; `guesser` and `buzzer` are YAML, see `contestant_from`.

    Raises the same errors as `session_emissions` and `contestant_from`.
    """
    from sqa_services.protocols.iwslt.questions import session_emissions

    contestant_from(guesser, buzzer)
    written = session_emissions(journal, session, questions)
    rows = ({"id": id, "answered": False, "steps": list(map(asdict, steps))} for id, steps in written.items())
    return as_lines([{"session": session, "guesser": guesser, "buzzer": buzzer}, *rows])


def problems_of_session(model: bytes, questions: Sequence[Question]) -> list[str]:
    """Return the reasons why a session cannot be scored on these questions."""
    _, written = _parsed(model)
    missing = [question.id for question in questions if question.id not in written]
    return [f"the session has other questions; {missing[0]} is missing"] if missing else []


def answer_session(model: bytes, questions: Sequence[Question]) -> list[QuestionTrace]:
    """Return the traces of a session with guesses and buzzes.  Raises DataError if the session has other questions."""
    if problems := problems_of_session(model, questions):
        raise DataError(problems[0])
    head, written = _parsed(model)
    guesser, buzzer = contestant_from(head["guesser"], head["buzzer"])
    if buzzer is None:
        raise DataError("session: without a buzzer there are no expected wins")
    emissions = {question.id: tuple(Emission(**step) for step in written[question.id]) for question in questions}
    guesses = _of_each(questions, guesses_rows(engine.guess(guesser, questions, emissions, lambda _: None)))
    buzzes = _of_each(questions, buzzes_rows(engine.buzz(buzzer, questions, guesses, lambda _: None)))
    return [QuestionTrace(q, emissions[q.id], guesses[q.id], buzzes[q.id]) for q in questions]


def _of_each(questions: Sequence[Question], rows: Mapping[str, T]) -> dict[str, T | tuple[()]]:
    """Return a dict that maps each question id to its rows, or to () if the question has no steps."""
    return {question.id: rows.get(question.id, ()) for question in questions}


def _parsed(model: bytes) -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
    head, *rows = (parse_json(line) for line in model.decode().splitlines())
    return head, {row["id"]: row["steps"] for row in rows}
