"""File formats: what is read, and that every fault names file and place."""

import json
from pathlib import Path

import pytest
import zstandard

from sqa.core.errors import DataError
from sqa.files import records


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def test_only_newline_ends_a_line_and_a_bom_is_dropped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffone\u2028still one\rstill\ntwo")
    assert list(records.lines(path)) == ["one\u2028still one\rstill", "two"]


def test_zstd_of_several_frames(tmp_path: Path) -> None:
    frames = b"".join(zstandard.compress(part) for part in (b"a\nb", b"c\n", b"d\n"))
    assert list(records.lines(write(tmp_path / "a.zst", frames))) == ["a", "bc", "d"]


@pytest.mark.parametrize("cut", [6, 300, 999])
def test_truncated_zstd(tmp_path: Path, cut: int) -> None:
    text = "".join(f"{i * 7919 % 104729}\n" for i in range(2000))
    whole = zstandard.compress(text.encode())
    assert len(whole) > 1000
    path = write(tmp_path / "a.jsonl.zst", whole[:cut])
    with pytest.raises(DataError, match=r"a\.jsonl\.zst.*truncated"):
        list(records.lines(path))


def test_not_zstd(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a sound zstd file"):
        list(records.lines(write(tmp_path / "a.zst", b"plain text, not compressed")))


def test_not_utf8_names_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "latin.txt", "fine\na\u00f1o\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.txt:2: not UTF-8 \(byte 0xf1 at 1\)"):
        list(records.lines(path))


def test_faulty_json(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.json: not JSON"):
        records.json_document(write(tmp_path / "a.json", '{"questions": ['))
    with pytest.raises(DataError, match=r"b\.jsonl:3: not JSON"):
        list(records.json_lines(write(tmp_path / "b.jsonl", '{}\n\n{"a"\n')))
    with pytest.raises(DataError, match=r"c\.jsonl:1: expected a JSON object, got list"):
        list(records.json_lines(write(tmp_path / "c.jsonl", "[]\n")))


def test_table_counts_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\nc\td\te\n")
    with pytest.raises(DataError, match=r"a\.tsv:2: expected 2 tab-separated columns, got 3"):
        list(records.table(path, 2))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        list(records.lines(tmp_path / "none.txt"))


def test_fingerprint(tmp_path: Path) -> None:
    rows = [{"b": 1, "a": "\u00e9"}, {"a": 2}]
    as_list = records.fingerprint(write(tmp_path / "a.json", json.dumps(rows)))
    assert as_list == records.fingerprint(write(tmp_path / "b.json", json.dumps({"version": 1, "questions": rows})))
    as_lines = records.fingerprint(write(tmp_path / "c.txt", '{"a": "\u00e9", "b": 1}\n{"a": 2}\n'))
    assert as_list == as_lines and as_list[0] == 2
    count, first, last = records.fingerprint(write(tmp_path / "d.json", "{}"))
    assert count == 0 and first == last
