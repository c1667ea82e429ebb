"""Helpers for tests of logs of other systems: write a log, replay it, and return the error for an invalid log."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refusals import refused

from smt.engines.recorded import RecordedConfig, build
from sqa.core import DataError, Question, check_emissions


def log(folder: Path, rows: Sequence[Any], **options: Any) -> RecordedConfig:
    """Write a log with the given rows (objects, or lines written verbatim), and return a config that replays it."""
    path = folder / "instances.log"
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8")
    return RecordedConfig(str(path), **options)


def emissions(config: Any, questions: Sequence[Question], build: Callable[[Any], Any] = build) -> str:
    """Replay a log and return every word as SENTENCE:WORD@g, with questions separated by bars.

    "+" marks words written after the end of the source, and "~n" a retraction of n words.
    """
    translator = build(config)
    translator.check(questions)
    batch = translator.translate_batch(questions)
    for question, written in zip(questions, batch, strict=True):
        check_emissions(question, written)
    return " | ".join(
        " ".join(f"{e.sentence}:{e.token}@{e.g}{'+' * e.ended}{f'~{e.erase}' * bool(e.erase)}" for e in written)
        for written in batch
    )


def problem(config: RecordedConfig, questions: Sequence[Question]) -> str:
    """Return the message of the DataError for a log, without the name of the log at its start."""
    message = refused(DataError, "", emissions, config, questions)
    assert message.startswith(config.file)
    return message.removeprefix(config.file)
