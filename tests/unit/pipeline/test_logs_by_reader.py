"""All log readers treat unusual files and values alike."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from refusals import refused
from tables import tables_of

from smt.engines.recorded import RecordedConfig, build
from sqa.core import DataError, Question
from sqa.metrics.latency_log import LogOptions, score
from sqa.questions.facts_log import judged_log

TABLES = tables_of(__file__)

SOURCES = ["a b c", "d e"]
TEXT = [
    {"index": 0, "prediction": "In 1830 London", "delays": [1, 2, 3], "elapsed": [0, 0, 0], "prediction_length": 3},
    {"index": 1, "prediction": "He sleeps", "delays": [1, 2], "elapsed": [0, 0], "prediction_length": 2},
]
for _row, _source in zip(TEXT, SOURCES, strict=True):
    _row |= {"reference": _row["prediction"], "source": _source, "source_length": len(_source.split())}
SPEECH = [
    {**row, "delays": [1000 * d for d in row["delays"]], "elapsed": [1000 * d + 50 for d in row["delays"]]}
    | {"source": [f"talks/{name}.wav", "samplerate: 16000 Hz"], "source_length": 1000 * row["source_length"]}
    for row, name in zip(TEXT, ("one", "two"), strict=True)
]
TIMES = ((1.0, 2.0, 3.0), (1.0, 2.0))
QUESTIONS = [
    Question(name, "test", "es", (tuple(source.split()),), ("X.",), "Page", times, name)
    for name, source, times in zip(("one", "two"), SOURCES, TIMES, strict=True)
]
Reader = Callable[[Path], object]


def run(path: Path) -> object:
    translator = build(RecordedConfig(str(path)))
    translator.check(QUESTIONS)
    return [[(e.token, e.g, e.ended) for e in emissions] for emissions in translator.translate_batch(QUESTIONS)]


def latency(path: Path) -> object:
    return [{k: v for k, v in row.items() if k != "index"} for row in score(str(path), LogOptions()).rows()]


def computation(path: Path) -> object:
    rows = score(str(path), LogOptions(computation_aware=True)).rows()
    return [{k: v for k, v in row.items() if k != "index"} for row in rows]


def strict(path: Path) -> object:
    score(str(path), LogOptions(strict=True))
    return latency(path)


def facts(path: Path) -> object:
    return [{**record, "index": 0} for record in judged_log(str(path), "es-en").records()]


READERS: dict[str, Reader] = {r.__name__: r for r in (run, latency, strict, facts)}
ALL: dict[str, Reader] = READERS | {"computation": computation}
KINDS = {"text": TEXT, "speech": SPEECH}
CASES = [(kind, reader) for kind in KINDS for reader in (*READERS.values(), *([computation] * (kind == "speech")))]


def plain(rows: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_floats(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_floats(inner) for inner in value]
    return float(value) if isinstance(value, int) else value


ODDITIES: dict[str, Callable[[Sequence[Any]], bytes]] = {
    "byte order mark": lambda rows: b"\xef\xbb\xbf" + plain(rows),
    "blank lines": lambda rows: b"\n" + plain(rows).replace(b"\n", b"\n \n\n"),
    "carriage returns": lambda rows: plain(rows).replace(b"\n", b"\r\n"),
    "no last line end": lambda rows: plain(rows).rstrip(),
    "whole floats": lambda rows: plain([as_floats(row) for row in rows]),
    "start index": lambda rows: plain([{**row, "index": row["index"] + 7} for row in rows]),
}


@pytest.mark.parametrize("oddity", ODDITIES)
@pytest.mark.parametrize(("kind", "reader"), CASES)
def test_unusual_log_reads_like_a_plain_log(kind: str, reader: Reader, oddity: str, tmp_path: Path) -> None:
    plain_path, path = tmp_path / "plain.log", tmp_path / "odd.log"
    plain_path.write_bytes(plain(KINDS[kind]))
    path.write_bytes(ODDITIES[oddity](KINDS[kind]))
    assert reader(path) == reader(plain_path)


def second(kind: str, **changed: Any) -> list[Any]:
    return [KINDS[kind][0], {**KINDS[kind][1], **changed}]


REFUSED: dict[str, tuple[list[Any], tuple[Reader, ...]]] = {  # lines, and the readers that refuse the second line
    name: (second(kind, **changed), tuple(ALL[reader] for reader in readers.split()))
    for name, (kind, changed, readers) in TABLES["refused"].items()
} | {
    "a text after speech": ([SPEECH[0], TEXT[1]], (run, strict, latency, facts, computation)),
    "speech after a text": ([TEXT[0], SPEECH[1]], (run, strict, latency, facts)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_impossible_lines_are_refused(case: str, tmp_path: Path) -> None:
    rows, readers = REFUSED[case]
    path = tmp_path / "instances.log"
    path.write_bytes(plain(rows))
    for reader in readers:
        refused(DataError, r"instances\.log:2: ", reader, path)


def test_decimal_point_does_not_imply_speech(tmp_path: Path) -> None:
    """If delays are in milliseconds, ATD pairs each word with 300 ms of speech."""
    path = tmp_path / "instances.log"
    delays = {"delays": [1000, 5000, 5000, 5000], "reference": "a b c"}
    values = []
    for length in (5000, 5000.0):
        for source in (["x.wav"], "x.wav"):
            path.write_bytes(plain([{**delays, "source": source, "source_length": length}]))
            values += score(str(path), LogOptions()).rows()
        path.write_bytes(plain([{**delays, "source_length": length}]))
        values += score(str(path), LogOptions(source="speech")).rows()
    assert all(value == values[0] for value in values)
    path.write_bytes(plain([{**delays, "source_length": 5000}]))
    assert next(iter(score(str(path), LogOptions()).rows()))["ATD"] != values[0]["ATD"]


def test_source_and_its_option_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "instances.log"
    path.write_bytes(plain(SPEECH))
    refused(
        DataError, ":1: `source` is an audio file, but --source is text", score, str(path), LogOptions(source="text")
    )
    path.write_bytes(plain(TEXT))
    says = ":1: `source` is a text of 3 words, the same number as source_length, but --source is speech"
    refused(DataError, says, score, str(path), LogOptions(source="speech", computation_aware=True))
    refused(DataError, "the delays are words, elapsed is", score, str(path), LogOptions(computation_aware=True))
    undeclared = [{"delays": [0.5, 1], "source_length": 3}]
    path.write_bytes(plain(undeclared))
    refused(DataError, ":1: the delay 0.5 .* give --source text or --source speech", score, str(path), LogOptions())


def test_start_index_without_sources_is_refused(tmp_path: Path) -> None:
    kept = ("prediction", "delays")
    rows = [{"index": 7 + row["index"], **{key: row[key] for key in kept}} for row in TEXT]
    path = tmp_path / "instances.log"
    path.write_bytes(plain(rows))
    refused(DataError, ":1: expected index 0, got index 7", run, path)
