"""Contradictory logs: each is refused with a one-line error that names file and line, or its odd line is reported.

`SQA_FUZZ_SEED=7 SQA_FUZZ_LOGS=300 pytest tests/fuzz/test_fuzz_logs.py` generates different cases and more of them.
"""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.good_files import log

from smt.engines.recorded import RecordedConfig, build
from sqa.core.errors import DataError
from sqa.metrics.latency_log import LogOptions, score
from sqa.questions.facts_log import FactOptions, judged_lines

SEED, CASES = os.environ.get("SQA_FUZZ_SEED", "4207"), int(os.environ.get("SQA_FUZZ_LOGS", "90"))
Record = dict[str, Any]


def good(speech: bool) -> list[Record]:
    rows: list[Record] = [json.loads(line) for line in log(speech).splitlines()]
    for row in rows:
        if speech:
            row |= {"delays": [1000 * delay for delay in row["delays"]], "source_length": 1000 * row["source_length"]}
            row["elapsed"] = [delay + 20 * i for i, delay in enumerate(row["delays"])]
    return rows


def falling(rng: random.Random, row: Record) -> Record:
    return {**row, "delays": [row["source_length"], *row["delays"][:-1]][: len(row["delays"])]}


def negative(rng: random.Random, row: Record) -> Record:
    return {**row, "delays": [-rng.choice((1, 1000, 0.5)), *row["delays"][1:]]}


def late(rng: random.Random, row: Record) -> Record:
    return {**row, "delays": [*row["delays"][:-1], row["source_length"] * rng.choice((2, 10)) + 2]}


def other_unit(rng: random.Random, row: Record) -> Record:
    factors = (0.001,) if isinstance(row["source"], list) else (1000, 0.001, 16)  # a recording may be longer
    return {**row, "source_length": row["source_length"] * rng.choice(factors)}


def other_source(rng: random.Random, row: Record) -> Record:
    lists = (["a b c"], ["x.txt", "samplerate: 16000"], [], 7, {"file": "a.wav"})
    return {**row, "source": rng.choice(lists)}


def spoken_output(rng: random.Random, row: Record) -> Record:
    return {**row, rng.choice(("durations", "intervals")): [[1.0, 2.0]]}


def number_for_text(rng: random.Random, row: Record) -> Record:
    return {**row, rng.choice(("delays", "source_length")): rng.choice(("5", None, True, [[1]], "5.0"))}


def lost_index(rng: random.Random, row: Record) -> Record:
    return {**row, "index": row["index"] + rng.choice((-1, 1, 0.5, 10))}


def lost_delay(rng: random.Random, row: Record) -> Record:
    return {**row, "delays": row["delays"][:-3]}


KINDS: dict[str, Callable[[random.Random, Record], Record]] = {
    each.__name__: each
    for each in (falling, negative, late, other_unit, other_source, spoken_output, number_for_text, lost_index)
} | {"lost_delay": lost_delay}


def readings(path: Path, speech: bool) -> dict[str, Callable[[], object]]:
    readers: dict[str, Callable[[], object]] = {
        "run": lambda: build(RecordedConfig(str(path))),
        "latency": lambda: score(str(path), LogOptions()).odd,
        "facts": lambda: judged_lines(str(path), FactOptions("es-en")),
    }
    if speech:
        readers["computation"] = lambda: score(str(path), LogOptions(computation_aware=True)).odd
    return readers


def test_contradictory_logs_are_refused_or_reported(tmp_path: Path) -> None:
    path = tmp_path / "instances.log"
    for case in range(CASES):
        rng = random.Random(f"{SEED} {case}")
        speech, kind = rng.random() < 0.5, rng.choice(list(KINDS))
        rows = good(speech)
        index = rng.randrange(1, len(rows))
        rows[index] = KINDS[kind](rng, rows[index])
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        refusals: dict[str, str] = {}
        marks: dict[str, Any] = {}
        for name, reader in readings(path, speech).items():
            try:
                marks[name] = reader()
            except DataError as error:
                refusals[name] = str(error)
        told = (case, kind, speech, rows[index])
        assert refusals or marks["latency"], told
        assert all(index + 1 in marks[name] for name in ("latency", "computation") if name in marks), told
        for message in refusals.values():
            assert message.startswith(f"{path}:{index + 1}:") and "\n" not in message, (*told, message)
