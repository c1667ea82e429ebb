"""Questions of listeners: what is asked about a source, which answers are right, when each word was said.

    question             in English; left out: who or what is meant, as in Quizbowl
    answers              the right ones, at least one: short answers compared as `sqa.core.answers.takes` does
    earliest_answerable  source words after which it can be answered, 0 .. all of them
    word_times           the second at which each source word has been said (docs/simulstream.md)
    recording            in which file

data/listening/schema.json is the JSON Schema of a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqa.core import answers
from sqa.core.errors import DataError
from sqa.core.types import Asked, Question

LONGEST = 1e7  # s: four months


def heard(where: str, question: Question, record: Mapping[str, Any]) -> Question:
    """The question with what its record says of listening; what does not fit: DataError."""
    if {"word_times", "recording"} & record.keys():
        question = _spoken(where, question, record)
    asked = {"question", "answers", "earliest_answerable"} & record.keys()
    return _asked(where, question, record) if asked else question


def _asked(where: str, question: Question, record: Mapping[str, Any]) -> Question:
    right, asked, earliest = record.get("answers"), record.get("question", ""), record.get("earliest_answerable")
    if not isinstance(right, list) or not right or not all(isinstance(t, str) and answers.bare(t) for t in right):
        raise DataError(f"{where}.answers: expected a list of texts, the right answers, got {repr(right)[:60]}")
    if {"page", "target_page"} & record.keys():
        raise DataError(f"{where}: has a page and answers; `answers` take the page's place")
    if not isinstance(asked, str) or ("question" in record and not asked.strip()):
        raise DataError(f"{where}.question: expected a text, or no such key, got {repr(asked)[:60]}")
    if wrong := next((wrong for text in (asked, *right) if (wrong := answers.unwritable(text))), ""):
        raise DataError(f"{where}: holds {wrong}; a question and its answers have no control characters")
    size = len(question.words)
    if earliest is not None and (type(earliest) is not int or not 0 <= earliest <= size):
        got = repr(earliest)[:40]
        raise DataError(f"{where}.earliest_answerable: expected 0 to {size} words of the source, got {got}")
    return replace(question, asked=Asked(" ".join(asked.split()), tuple(right), earliest))


def _spoken(where: str, question: Question, record: Mapping[str, Any]) -> Question:
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
