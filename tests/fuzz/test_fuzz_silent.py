"""Mistakes that a reader could silently ignore are refused with a one-line error that names file and line.

`SQA_FUZZ_SEED=7 pytest tests/fuzz/test_fuzz_silent.py` generates different cases.
"""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz.good_files import RECORDS, buzzes, log
from tables import tables_of

from guessers.training_texts import own_texts
from smt.engines.recorded import RecordedConfig, build
from sqa.core import DataError
from sqa.data.datasets import load_questions
from sqa.data.human_buzzes import load_buzzes
from sqa.files import records
from sqa.metrics.latency_log import LogOptions, score
from sqa_services.protocols.submission import traces_of

TABLES = tables_of(__file__)

SEED = os.environ.get("SQA_FUZZ_SEED", "240407")
CASES = 20  # per kind and reader
Record = dict[str, Any]
QUESTIONS = [dict(record) for record in RECORDS]
SUBMISSION = [{"question": r["id"], "step": 0, "token": "x", "g": 1, "guess": "Peru", "buzz": True} for r in RECORDS]
PAGES = [{"text": f"Word {i} of it.", "page": f"Page {i}", "id": f"t{i}"} for i in range(5)]
LOG, HEARD = ([json.loads(line) for line in log(speech).splitlines()] for speech in (False, True))
BUZZES = [json.loads(line) for line in buzzes().splitlines()]
CONTROL = [chr(i) for i in (*range(9), *range(14, 28), *range(127, 133), *range(134, 160))]  # none is white space
BREAKS = [*"\t\n\r\v\f\x1c\x1d\x1e\x85", "\u2028", "\u2029", *CONTROL]


def submitted(path: Path) -> None:
    """Read a submission and raise DataError with its first problem."""
    problems: list[str] = []
    questions = path.with_name("questions.jsonl")
    questions.write_text("".join(json.dumps(record) + "\n" for record in QUESTIONS))
    traces_of(records.lines(path), load_questions(str(questions)), problems)
    if problems:
        raise DataError(f"{path}:{problems[0]}")


READERS: dict[str, tuple[list[Record], Callable[[Path], object]]] = {
    "questions": (QUESTIONS, lambda path: load_questions(str(path))),
    "pages": (PAGES, lambda path: own_texts([path])),
    "latency": (LOG, lambda path: score(str(path), LogOptions())),
    "computation": (HEARD, lambda path: score(str(path), LogOptions(computation_aware=True))),
    "recorded": (LOG, lambda path: build(RecordedConfig(str(path)))),
    "submission": (SUBMISSION, submitted),
    "buzzes": (BUZZES, lambda path: load_buzzes(str(path))),
}
READ = {  # keys that the reader uses, for formats in which it ignores other keys
    "latency": "delays source_length reference_length reference prediction prediction_length index".split(),
    "buzzes": ["qid", "correct", "rel_pos"],
}
READ["computation"] = ["elapsed", *READ["latency"]]
OURS = ("questions", "pages", "submission")  # unknown keys are errors; files of other programs may have more keys
KEYS = TABLES["keys"]


def misspelt(rng: random.Random, key: str) -> str:
    """Return the key with a letter omitted, doubled, swapped or capitalized, or with an added "s" or space."""
    i = rng.randrange(len(key) - 1)
    start, letter, end = key[:i], key[i], key[i + 1 :]
    swapped = start + end[0] + letter + end[1:]
    return rng.choice(
        [start + end, start + 2 * letter + end, swapped, start + letter.upper() + end, f"{key}s", f" {key}"]
    )


def holding(rng: random.Random, text: str, among: list[str]) -> str:
    """Return the text with a random character of `among` inserted, but not at the start or the end."""
    i = rng.randrange(1, max(2, len(text)))
    return text[:i] + rng.choice(among) + (text[i:] or "x")


def misspell(rng: random.Random, reader: str, record: Record) -> str:
    key = rng.choice(KEYS[reader])
    while (other := misspelt(rng, key)) in record:
        pass
    if reader in OURS and rng.random() < 0.5:  # keep the correct key, so that no key is missing
        return json.dumps({**record, other: 1})
    return json.dumps({other if k == key else k: v for k, v in record.items()})


def twice(rng: random.Random, reader: str, record: Record) -> str:
    key = rng.choice([key for key in READ.get(reader, record) if key in record])
    name = key if rng.random() < 0.7 else "".join(f"\\u{ord(c):04x}" if rng.random() < 0.5 else c for c in key)
    value = record[key] if rng.random() < 0.5 else rng.choice([None, 0, "x", []])
    return "{" + f'"{name}": {json.dumps(value)}, ' + json.dumps(record)[1:]


def control(rng: random.Random, reader: str, record: Record) -> str:
    key = {"submission": "guess"}.get(reader, "page")
    return json.dumps({**record, key: holding(rng, record[key], CONTROL)})


def torn_id(rng: random.Random, reader: str, record: Record) -> str:
    return json.dumps({**record, "id": holding(rng, record["id"], BREAKS)})


def negative(rng: random.Random, reader: str, record: Record) -> str:
    times = list(record["elapsed"])
    times[rng.randrange(len(times))] = rng.choice([-1, -0.5, -1e-9, -3_000])
    return json.dumps({**record, "elapsed": times})


KINDS: dict[str, tuple[Callable[[random.Random, str, Record], str], tuple[str, ...]]] = {
    "misspelt key": (misspell, tuple(KEYS)),
    "key twice": (twice, tuple(READERS)),
    "control character": (control, OURS),
    "torn id": (torn_id, ("questions", "pages")),
    "negative elapsed": (negative, ("latency", "computation", "recorded")),
}


@pytest.mark.parametrize(("kind", "reader"), [(kind, r) for kind, (_, names) in KINDS.items() for r in names])
def test_mistake_is_refused_by_line(kind: str, reader: str, tmp_path: Path) -> None:
    corrupt, (rows, read) = KINDS[kind][0], READERS[reader]
    path = tmp_path / f"{reader}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read(path)  # a reader that refuses every file would pass the loop below
    for case in range(CASES):
        rng = random.Random(f"{SEED} {kind} {reader} {case}")
        index = rng.randrange(len(rows))
        lines = [json.dumps(row) for row in rows]
        lines[index] = corrupt(rng, reader, rows[index])
        path.write_text("".join(f"{line}\n" for line in lines))
        with pytest.raises(DataError) as caught:
            read(path)
        message = str(caught.value)
        assert message.startswith(f"{path}:{index + 1}:") and "\n" not in message, (case, lines[index], message)
