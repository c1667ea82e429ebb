"""The shared reader of external files: formats, limits and error messages."""

import ast
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from refusals import refused
from tables import tables_of

from sqa.core import GREATEST_SMALL, ROOT, Emission, Question, check_emissions
from sqa.core.errors import ConfigError, DataError, TraceError, on_a_screen
from sqa.data.datasets import load_questions
from sqa.files import records

TABLES = tables_of(__file__)

OWN = TABLES["own"]


def _reads_json(path: Path) -> bool:
    """Return whether a module calls json.load or json.loads on anything except the result of json.dumps."""
    if "json.load" not in (text := path.read_text(encoding="utf-8")):
        return False
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    reading = [node for node in calls if ast.unparse(node.func) in ("json.load", "json.loads")]
    return any(not ast.unparse(node.args[0]).startswith("json.dumps(") for node in reading)


def test_no_other_module_reads_json() -> None:
    rooms = ("sqa", "smt", "guessers", "buzzers", "services/sqa_services")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    readers = {str(path.relative_to(ROOT)) for path in paths if _reads_json(path)}
    assert readers <= set(OWN), "use sqa.files.records, which has limits"


def test_long_message_is_shortened_to_fit_a_screen() -> None:
    """A long text is cut at the end, and control characters are escaped."""
    error = ConfigError([f"key{i}: {'x' * 5000} end" for i in range(500)])
    assert str(error).startswith("key0: xxx") and len(str(error)) < 4100 and str(error).endswith("more characters]")
    assert len(error.problems) == 500  # programs receive all problems
    assert str(DataError("a\x1b[2J\rb\tc\ud800")) == "a\\x1b[2J\\rb\tc\ud800"
    assert on_a_screen("plain\nlines") == "plain\nlines"


def test_too_large_files_and_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix, pack in ((".zst", zstandard.compress), (".gz", gzip.compress)):
        bomb = tmp_path / f"bomb.jsonl{suffix}"
        bomb.write_bytes(pack(b" " * (80 << 20)))
        assert bomb.stat().st_size < 100_000
        refused(DataError, r"bomb\.jsonl.*: unpacks to more than 200 times its size", list, records.json_lines(bomb))
    monkeypatch.setattr(records, "MAX_LINE", 1 << 21)
    path = tmp_path / "long.txt"
    path.write_bytes(b"short\n" + b"x" * (5 << 20))
    refused(DataError, r"long\.txt:2: a line of more than 2 MiB", list, records.lines(path))
    path.write_bytes(b"short\n" + b"x" * (3 << 19) + b"\n" + b"y" * (3 << 19))
    assert [len(line) for line in records.lines(path)] == [5, 3 << 19, 3 << 19]


def test_too_many_sentences_are_refused(tmp_path: Path) -> None:
    path, many = tmp_path / "q.jsonl", GREATEST_SMALL + 1
    path.write_text(json.dumps({"language": "es", "page": "Peru", "source": ["uno"] * many, "reference": ["one"]}))
    refused(DataError, r"q\.jsonl:1: record 0\.source: has 32768 sentences", load_questions, str(path))
    written = [Emission(0, "w", 1, False)] * many + [Emission(0, "", 1, False, many)]
    with pytest.raises(TraceError, match=r"erase must be in 0\.\.32767"):
        check_emissions(Question("q", "d", "es", (("uno",),), (), "Peru"), written)


# ------------------------------------------------------------------------------------------------ file formats


def test_line_endings_and_byte_order_mark_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\ufeffone\u2028still\x85one\r\ntwo\n\nfour\r\n", encoding="utf-8", newline="")
    assert list(records.lines(path)) == ["one\u2028still\x85one", "two", "", "four"]
    for text in ("one\ntwo\rthree\n", "one\ntwo\r\r\n"):
        path.write_text(text, encoding="utf-8", newline="")
        refused(DataError, r"a\.txt:2: a carriage return within the line \(character 3\)", list, records.lines(path))


@pytest.mark.parametrize(("suffix", "pack"), [(".zst", zstandard.compress), (".gz", gzip.compress)])
def test_compressed_files_may_have_several_frames(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(b"".join(map(pack, (b"a\nb", b"c\n", b"d\n"))))
    assert list(records.lines(path)) == ["a", "bc", "d"] and records.suffix(path) == ".txt"


PACKED = zstandard.compress("".join(f"{i * 7919 % 104729}\n" for i in range(2000)).encode())
GZIPPED = gzip.compress("".join(f"{i * 7919 % 104729}\n" for i in range(2000)).encode())
READERS = {".json": records.json_document, ".jsonl": records.json_lines, ".tsv": lambda path: records.table(path, 2)}


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        *[("a.jsonl.zst", PACKED[:cut], r"a\.jsonl\.zst.*truncated") for cut in (6, 999)],
        ("a.jsonl.gz", GZIPPED[:999], r"a\.jsonl\.gz.*truncated"),
        *TABLES["damaged_files_are_refused"],
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, data: bytes | str | None, message: str) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data.encode("latin-1") if isinstance(data, str) else data)
    reader = READERS.get(path.suffix, records.lines)
    refused(DataError, message, lambda: list(reader(path)))
