"""Every reader of user files accepts or refuses the same unusual input."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from refusals import refused

from guessers.llm.reply import Titles
from guessers.open_qa.passages import read_passages
from guessers.training_texts import own_texts
from smt.engines.fairseq import read_dictionary
from smt.engines.fixed import FixedConfig, FixedTranslator
from smt.engines.recorded import RecordedConfig, build
from sqa.core import DataError, Emission, Question
from sqa.data.datasets import load_questions
from sqa.data.human_buzzes import load_buzzes
from sqa.data.texts import load_own_pairs
from sqa.files import records
from sqa.metrics.latency_log import LogOptions, lines_beside, score
from sqa.metrics.quality.score_file import read as read_scores
from sqa.metrics.quality.text_metric import Segment
from sqa_services.protocols.submission import rows_of

QUESTIONS = [Question(f"q{n}", "q", "es", (("uno", "dos"),), ("one",), "Peru") for n in (1, 2)]
RECORDS = [
    {"id": f"q{n}", "language": "es", "page": "Perú", "source": ["uno dos"], "reference": ["one two"]} for n in (1, 2)
]


def fixed(path: Path) -> list[list[Emission]]:
    """Return the emissions of the fixed translator for a file with one line per question."""
    translator = FixedTranslator(FixedConfig(str(path), unit="question"))
    translator.check(QUESTIONS)
    return translator.translate_batch(QUESTIONS)


def recorded(path: Path) -> list[list[Emission]]:
    """Return the emissions recorded in a log."""
    translator = build(RecordedConfig(str(path)))
    translator.check(QUESTIONS)
    return translator.translate_batch(QUESTIONS)


def submitted(path: Path) -> object:
    """Return the rows of each question in a submission, and the question ids."""
    problems: list[str] = []
    rows = rows_of(records.lines(path), problems)
    if problems:
        raise DataError(f"{path}: {problems[0]}")
    return [[(row.token, row.g, row.guess) for _, row in of] for of in rows[0].values()], sorted(rows[0])


def buzzes(path: Path) -> object:
    """Return the questions and positions in a file of buzzes."""
    loaded = load_buzzes(str(path))
    return loaded.question.tolist(), loaded.position.tolist()


def as_lines(*rows: dict[str, Any]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


BUZZES = [{"qid": f"q{n}", "correct": True, "rel_pos": 0.5, "player": "Zoë"} for n in (1, 2)]
LOG = [
    {"index": n, "prediction": "one twó", "delays": [1, 2], "prediction_length": 2, "source_length": 2} for n in (0, 1)
]
ROWS = [{"question": f"q{n}", "step": 0, "token": "twó", "g": 1, "guess": "Perú", "buzz": False} for n in (1, 2)]
READERS: dict[str, tuple[str, str, Callable[[Path], Any]]] = {  # file, content, reader
    "questions": ("q.jsonl", as_lines(*RECORDS), lambda path: load_questions(str(path))),
    "texts": (
        "t.jsonl",
        as_lines(*({"id": f"t{n}", "text": "twó words", "page": "Perú"} for n in (1, 2))),
        lambda path: own_texts([path]),
    ),
    "pairs": ("p.tsv", "uno dos\tone twó\ntres\tthree\n", lambda path: list(load_own_pairs(path, "es-en"))),
    "fixed": ("f.txt", "one twó\nthree\n", fixed),
    "references": ("r.txt", "one twó\nthree\n", lambda path: [x.split() for x in lines_beside("log", path, 2)]),
    "scores": (
        "s.txt",
        "0.5\n1\n\u00a0\n",  # a blank line that is not ASCII
        lambda path: read_scores(path, [Segment(f"q{n}", "", "twó", "") for n in (1, 2)]),
    ),
    "buzzes": ("b.jsonl", as_lines(*BUZZES), buzzes),
    "log": ("l.log", as_lines(*LOG), recorded),
    "latencies": ("l.log", as_lines(*LOG), lambda path: list(score(str(path), LogOptions()).rows())),
    "submission": ("sub.jsonl", as_lines(*ROWS), submitted),
    "passages": (
        "w.jsonl",
        as_lines(*({"id": f"p{n}", "title": "Perú", "text": "twó words"} for n in (1, 2))),
        read_passages,
    ),
    "titles": ("titles.txt", "Perú\nLima\n", lambda path: Titles.of(str(path)).pages),
    "dictionary": ("dict.txt", "twó 7\nthree 3\n", read_dictionary),
}
TAKEN: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "CRLF and byte order mark": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
}
REFUSED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "old Mac": (lambda data: data.replace(b"\n", b"\r"), r":1: a carriage return within the line"),
    "stray carriage return": (
        lambda data: data[:1] + b"\r" + data[1:],
        r":\d: a carriage return within the line .*; end lines with",
    ),
    "latin-1": (lambda data: data.decode().encode("latin-1"), r":\d: not UTF-8 \(byte 0x"),
    "utf-16": (lambda data: data.decode().encode("utf-16"), r":1: not UTF-8 \(byte 0xff at 0\)"),
}
OF_LINES = tuple(name for name, (file, _, _) in READERS.items() if file.endswith((".jsonl", ".log")))


def written(folder: Path, name: str, data: bytes, oddity: str = "") -> Path:
    """Write `data` to an input file for the reader `name` and return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / (READERS[name][0] + {"gzip": ".gz", "zstd": ".zst"}.get(oddity, ""))
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("oddity", TAKEN)
@pytest.mark.parametrize("name", READERS)
def test_harmless_variants_change_nothing(tmp_path: Path, name: str, oddity: str) -> None:
    _, content, read = READERS[name]
    plain = read(written(tmp_path / "plain", name, content.encode()))
    assert read(written(tmp_path / "odd", name, TAKEN[oddity](content.encode()), oddity)) == plain


@pytest.mark.parametrize("oddity", REFUSED)
@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_invalid_input(tmp_path: Path, name: str, oddity: str) -> None:
    _, content, read = READERS[name]
    change, message = REFUSED[oddity]
    path = written(tmp_path, name, change(content.encode()))
    refused(DataError, message, read, path)


@pytest.mark.parametrize("name", OF_LINES)
def test_blank_lines_between_records_are_skipped(tmp_path: Path, name: str) -> None:
    _, content, read = READERS[name]
    plain = read(written(tmp_path / "plain", name, content.encode()))
    blank = "\n \n" + content.replace("\n", "\n\n")
    assert read(written(tmp_path / "odd", name, blank.encode())) == plain


@pytest.mark.parametrize("name", ["pairs", "fixed", "references", "texts", "questions", "log"])
@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_unicode_separators_count_as_spaces_in_a_line(tmp_path: Path, name: str, separator: str) -> None:
    _, content, read = READERS[name]
    escape = json.dumps(separator)[1:-1] if name in OF_LINES and separator < " " else separator
    odd = {"pairs": "uno dos", "questions": "uno dos", "texts": "twó words"}.get(name, "one twó")
    plain = read(written(tmp_path / "plain", name, content.encode()))
    path = written(tmp_path / "odd", name, content.replace(odd, odd.replace(" ", escape)).encode())
    got = read(path)
    if name == "pairs":  # whitespace is collapsed later, by the cleaner
        got = [pair._replace(source=" ".join(pair.source.split())) for pair in got]
    assert got == plain


@pytest.mark.parametrize("value", ["7", "7.0"])
@pytest.mark.parametrize("name", ["questions", "texts", "buzzes", "submission", "passages"])
def test_identifiers_may_be_integers(tmp_path: Path, name: str, value: str) -> None:
    _, content, read = READERS[name]
    first = next(id for id in ("q1", "t1", "p1") if f'"{id}"' in content)
    as_text = read(written(tmp_path / "text", name, content.replace(f'"{first}"', '"7"').encode()))
    as_number = read(written(tmp_path / "number", name, content.replace(f'"{first}"', value).encode()))
    assert as_number == as_text


@pytest.mark.parametrize("name", ["log", "submission"])
def test_integers_may_be_written_as_floats(tmp_path: Path, name: str) -> None:
    _, content, read = READERS[name]
    plain = read(written(tmp_path / "plain", name, content.encode()))
    floats = content.replace("[1, 2]", "[1.0, 2.0]").replace('"g": 1', '"g": 1.0').replace('length": 2', 'length": 2e0')
    assert read(written(tmp_path / "odd", name, floats.encode())) == plain
    half = content.replace("[1, 2]", "[1.5, 2]").replace('"g": 1', '"g": 1.5')
    refused(DataError, "1.5|`int`", read, written(tmp_path / "half", name, half.encode()))


@pytest.mark.parametrize("oddity", ["byte order mark", "CRLF", "gzip", "zstd"])
def test_questions_may_be_a_single_json_document(tmp_path: Path, oddity: str) -> None:
    plain, odd = tmp_path / "q.json", tmp_path / f"q.json{ {'gzip': '.gz', 'zstd': '.zst'}.get(oddity, '') }"
    data = json.dumps([*RECORDS, {**RECORDS[0], "id": 3.0}], indent=1).encode()
    plain.write_bytes(data)
    expected = load_questions(str(plain))
    odd.write_bytes(TAKEN[oddity](data))
    assert load_questions(str(odd)) == expected and expected[2].id == "3"
