"""Logs of other systems: writing, replaying, and the errors of invalid logs."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refusals import refused

from smt.engines.recorded import RecordedConfig, build
from sqa.core.errors import DataError
from sqa.core.trace import check_emissions
from sqa.core.types import Question


def log(folder: Path, rows: Sequence[Any], **options: Any) -> RecordedConfig:
    """Write a log of these objects, or of verbatim lines, and return its config."""
    path = folder / "instances.log"
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8")
    return RecordedConfig(str(path), **options)


def emissions(config: Any, questions: Sequence[Question], build: Callable[[Any], Any] = build) -> str:
    """Return every word as SENTENCE:WORD@g, with questions separated by bars.

    A + marks words after the end of the source, and ~n a retraction of n words.
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
    """Return the error message for a log, without its file name."""
    message = refused(DataError, "", emissions, config, questions)
    assert message.startswith(config.file)
    return message.removeprefix(config.file)
