"""Read the user's question files: their keys and checks.

A file is JSON (a list, or a mapping with a list "questions"), JSON lines, or a table with named columns (.csv, .tsv),
optionally compressed (.zst, .gz).  A key with null and an empty cell count as absent.
Each record has `source`, `reference` (texts, or lists of sentences), `page` (or `target_page`), `language` (ISO
639-1) and optionally `id`.  The default id is <file name>-<record number>.  Other data goes under `meta` or keys
that begin with an underscore; any other key is an error.  Optional keys for listening comprehension and speech:

    question             in English; the default asks who or what is described, as in Quizbowl
    answers              accepted short answers, at least one, compared by `sqa.core.quizbowl.takes`
    earliest_answerable  number of source words, 0 to all, after which the question can be answered
    word_times           seconds at which each source word has been spoken (docs/simulstream.md)
    recording            name of the audio file

data/listening/schema.json is the JSON Schema of a record.

With `word_times` or `recording` a text is not split into sentences.  `answers` replace the page.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqa.core import Asked, DataError, Question, answers, did_you_mean, quizbowl
from sqa.files import records

HEARD = ("word_times", "recording", "question", "answers", "earliest_answerable")
OWN_KEYS = ("id", "language", "source", "reference", "page", "target_page", *HEARD, "meta")  # allowed keys
SEPARATORS = {".csv": ",", ".tsv": "\t"}
LONGEST = 1e7  # seconds, about four months


def read(path: Path) -> Iterator[tuple[str, dict[str, Any], tuple[Any, ...]]]:
    """Yield the location of each record, the record, and the arguments of `datasets._question` after `where`."""
    stem = path.name.split(".")[0]
    listed: Iterable[tuple[str, dict[str, Any]]]
    if (ending := records.suffix(path)) == ".json":
        listed = ((str(path), record) for record in records.listed(path))
    elif ending in SEPARATORS:
        rows = csv.DictReader(records.lines(path), delimiter=SEPARATORS[ending], restkey="a cell without a column")
        if not {*OWN_KEYS} & {*(rows.fieldnames or ())}:
            columns = f"expected names of columns, such as source, reference, page, separated by {SEPARATORS[ending]!r}"
            raise DataError(f"{path}:1: {columns}; got {', '.join(rows.fieldnames or ())[:80] or 'nothing'}")
        listed = ((f"{path}:{rows.line_num}", {key: value or None for key, value in row.items()}) for row in rows)
    else:
        listed = ((f"{path}:{number}", record) for number, record in records.numbered_lines(path))
    for i, (file, given_record) in enumerate(listed):
        record = {key: value for key, value in given_record.items() if value is not None}
        where = f"{file}: record {i}"
        _check_keys(where, record)
        given = record.get("id")
        id = f"{stem}-{i}" if given is None else records.name_of(where, "id", given)
        spoken, source = {"word_times", "recording"} & record.keys(), record.get("source")
        titles, page = record.get("answers"), record.get("page", record.get("target_page"))
        if isinstance(titles, list) and titles:
            page = titles[0]
        source = [source] if spoken and isinstance(source, str) else source
        yield where, record, (id, stem, record.get("language"), source, record.get("reference"), page)


def record_of(question: Question) -> dict[str, Any]:
    """Convert a question to a record of a question file; data for listening and speech are left out."""
    source = [" ".join(words) for words in question.sentences]
    about = {"id": question.id, "language": question.language, "page": question.page}
    return {**about, "source": source, "reference": list(question.reference)}


def _check_keys(where: str, record: Mapping[str, Any]) -> None:
    """Raise DataError for an unknown key, which may be misspelt."""
    for key in record:
        if key not in OWN_KEYS and not key.startswith("_"):
            near, allowed = did_you_mean(key, OWN_KEYS), ", ".join(OWN_KEYS)
            raise DataError(
                f"{where}: unknown key {key[:60]!r}{near}; known are {allowed}; other data "
                "belong under `meta` or keys that begin with an underscore"
            )
    if "page" in record and "target_page" in record:
        raise DataError(f"{where}: has page and target_page, which are synonyms; give one of them")


def heard(where: str, question: Question, record: Mapping[str, Any]) -> Question:
    """Add a record's data for listening and speech to its question.  Raises DataError for invalid values."""
    if {"word_times", "recording"} & record.keys():
        question = _spoken(where, question, record)
    asked = {"question", "answers", "earliest_answerable"} & record.keys()
    return _asked(where, question, record) if asked else question


def _asked(where: str, question: Question, record: Mapping[str, Any]) -> Question:
    right, asked, earliest = record.get("answers"), record.get("question", ""), record.get("earliest_answerable")
    if not isinstance(right, list) or not right or not all(isinstance(t, str) and quizbowl.bare(t) for t in right):
        raise DataError(f"{where}.answers: expected a list of texts, the right answers, got {repr(right)[:60]}")
    if {"page", "target_page"} & record.keys():
        raise DataError(f"{where}: has a page and answers; `answers` replace the page")
    if not isinstance(asked, str) or ("question" in record and not asked.strip()):
        raise DataError(f"{where}.question: expected a text, or no such key, got {repr(asked)[:60]}")
    if wrong := next((wrong for text in (asked, *right) if (wrong := answers.unwritable(text))), ""):
        raise DataError(f"{where}: contains {wrong}; a question and its answers must have no control characters")
    size = len(question.words)
    if earliest is not None and (type(earliest) is not int or not 0 <= earliest <= size):
        got = repr(earliest)[:40]
        raise DataError(f"{where}.earliest_answerable: expected 0 to {size} words of the source, got {got}")
    return replace(question, asked=Asked(" ".join(asked.split()), tuple(right), earliest))


def _spoken(where: str, question: Question, record: Mapping[str, Any]) -> Question:
    """Add `word_times` and `recording` (default: the id) to a question.  Raises DataError for invalid values."""
    times, recording, before = record.get("word_times"), record.get("recording", question.id), 0.0
    if not isinstance(times, list) or len(times) != len(question.words):
        got = len(times) if isinstance(times, list) else repr(times)[:40]
        raise DataError(f"{where}.word_times: expected {len(question.words)} seconds, one for each word, got {got}")
    for i, time in enumerate(times):
        if type(time) not in (int, float) or not before <= time <= LONGEST:
            limits = f"{before:g} (words must not end before their predecessors) to {LONGEST:g}"
            raise DataError(f"{where}.word_times[{i}]: expected seconds, {limits}, got {repr(time)[:40]}")
        before = time
    if not isinstance(recording, str) or not recording.strip() or answers.unwritable(recording, answers.LINE_ENDS):
        raise DataError(f"{where}.recording: expected the name of a file, got {repr(recording)[:60]}")
    return replace(question, word_times=tuple(map(float, times)), recording=recording)
