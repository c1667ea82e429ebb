"""Readers refuse a mixture of two runs, and unchanged files are not written again."""

from pathlib import Path

import pytest
from refusals import refused
from small_runs import small_run

from sqa.core import DataError
from sqa.pipeline import folder as runs
from sqa.pipeline import saving
from sqa.results import Frame


def packed(tmp_path: Path, k: int) -> dict[str, bytes]:
    done = small_run(tmp_path, translator={"name": "doubles:build_translator", "k": k})
    return saving.pack(done)


@pytest.fixture
def old_and_new(tmp_path: Path) -> list[dict[str, bytes]]:
    return [packed(tmp_path, k) for k in (1, 3)]


@pytest.mark.parametrize("name", [saving.CONFIG, saving.STATS, saving.REPORT])
def test_file_of_another_run_is_refused(tmp_path, old_and_new, name) -> None:
    old, new = old_and_new
    saving.unpack(old, tmp_path / "t")
    (tmp_path / "t" / name).write_bytes(new[name])
    refused(
        DataError,
        rf"t/{name}: damaged, changed, or from another run.*; run the config again",
        runs.read,
        tmp_path / "t",
    )


def test_rewritten_run_keeps_its_report(tmp_path, old_and_new) -> None:
    old, new = old_and_new
    saving.unpack(old, tmp_path / "t")
    opened = runs.read(tmp_path / "t")
    saving.unpack(new, tmp_path / "t")
    report = Frame((), tuple(opened.report.values())).table().to_tsv()
    assert report.encode() == old[saving.REPORT] != new[saving.REPORT]


def test_unchanged_run_is_not_written_again(tmp_path, old_and_new) -> None:
    saving.unpack(old_and_new[0], tmp_path / "t")
    before = {path: path.stat().st_ino for path in (tmp_path / "t").iterdir()}
    saving.unpack(old_and_new[0], tmp_path / "t")
    assert {path: path.stat().st_ino for path in (tmp_path / "t").iterdir()} == before
