"""Questions that are heard: when each of their words has been said, and in which recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqa.core import answers
from sqa.core.errors import DataError
from sqa.core.types import Question

LONGEST = 1e7  # s: four months


def with_times(where: str, question: Question, record: Mapping[str, Any]) -> Question:
    """The question with the `word_times` of its record, and its `recording` (else the id).  Neither fits: DataError."""
    times, recording, before = record.get("word_times"), record.get("recording", question.id), 0.0
    if not isinstance(times, list) or len(times) != len(question.words):
        got = len(times) if isinstance(times, list) else repr(times)[:40]
        raise DataError(f"{where}.word_times: expected {len(question.words)} seconds, one for each word, got {got}")
    for i, time in enumerate(times):
        if type(time) not in (int, float) or not before <= time <= LONGEST:
            limits = f"{before:g} (no word ends before the one before it) to {LONGEST:g}"
            raise DataError(f"{where}.word_times[{i}]: expected seconds, {limits}, got {repr(time)[:40]}")
        before = time
    if not isinstance(recording, str) or not recording.strip() or answers.unwritable(recording, answers.LINE_ENDS):
        raise DataError(f"{where}.recording: expected the name of a file, got {repr(recording)[:60]}")
    return replace(question, word_times=tuple(map(float, times)), recording=recording)
