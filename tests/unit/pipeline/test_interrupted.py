"""A run folder stays consistent with a full disk, a killed writer, and concurrent readers."""

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from refusals import refused
from small_runs import small_run

from sqa.core.errors import DataError, SqaError
from sqa.pipeline import folder as runs
from sqa.pipeline import saving

WRITES = (
    (os, "open"), (os, "mkdir"), (os, "fsync"), (os, "replace"), (os, "rename"), (os, "unlink"), (io, "open"),
    (Path, "write_bytes"), (Path, "write_text"),
)  # fmt: skip


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[list[str]]:
    """Let `after` write operations succeed and the next one fail; yield the names of the operations so far."""
    called: list[str] = []

    def failing(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and arguments[1:2] in (("r",), ("rb",), (os.O_RDONLY,)):
                return real(*arguments, **options)
            called.append(name)
            if len(called) != after + 1:
                return real(*arguments, **options)
            if name.startswith("write"):  # half of the data fits
                path, data = arguments
                real(path, data[: len(data) // 2], **options)
            raise OSError(errno.ENOSPC, "No space left on device")

        return call

    with monkeypatch.context() as patched:
        for owner, name in WRITES:
            patched.setattr(owner, name, failing(name, getattr(owner, name)))
        yield called


def seen(folder: Path) -> Any:
    """Return everything that readers see of a run."""
    run = runs.read(folder)
    stats = {name: rows.tolist() for name, rows in run.stats.items()}
    return run.config, run.dataset, run.stages, stats, run.report


def seen_or_refused(folder: Path) -> Any:
    """Return everything that readers see of a run, or None if they refuse it in one line."""
    try:
        return seen(folder)
    except SqaError as error:
        assert len(str(error).splitlines()) == 1 and str(folder) in str(error)
        return None


def packed(tmp_path: Path, k: int) -> dict[str, bytes]:
    done = small_run(tmp_path, translator={"name": "doubles:build_translator", "k": k})
    return saving.pack(done)


@pytest.fixture
def old_and_new(tmp_path: Path) -> list[dict[str, bytes]]:
    return [packed(tmp_path, k) for k in (1, 3)]


def test_full_disk_at_any_write_leaves_no_mixture(tmp_path, monkeypatch, old_and_new) -> None:
    old, new = old_and_new
    saving.unpack(new, tmp_path / "new")
    folder, before = tmp_path / "t", tmp_path / "before"
    saving.unpack(old, before)
    outcomes = set()
    for after in range(1000):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(before, folder)
        with full_disk(monkeypatch, after) as called:
            try:
                saving.unpack(new, folder)
            except OSError as error:
                assert error.errno == errno.ENOSPC
        failed = called[after] if after < len(called) else None
        outcome = seen_or_refused(folder)
        outcomes.add("refused" if outcome is None else "old" if outcome == seen(before) else "new")
        assert outcome in (None, seen(before), seen(tmp_path / "new"))
        assert outcome is not None or failed in ("replace", "unlink")  # the old run survives data that do not fit
        assert not list(tmp_path.rglob("*.partial"))
        saving.unpack(new, folder)
        assert seen(folder) == seen(tmp_path / "new")
        if failed is None:
            break
    assert outcomes == {"old", "refused", "new"} and after > 20


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


def test_rewritten_run_is_refused(tmp_path, old_and_new) -> None:
    old, new = old_and_new
    saving.unpack(old, tmp_path / "t")
    opened = runs.read(tmp_path / "t")
    saving.unpack(new, tmp_path / "t")
    refused(DataError, r"report\.tsv: damaged, changed", lambda: opened.report)


def test_unchanged_run_is_not_written_again(tmp_path, old_and_new) -> None:
    saving.unpack(old_and_new[0], tmp_path / "t")
    before = {path: path.stat().st_ino for path in (tmp_path / "t").iterdir()}
    saving.unpack(old_and_new[0], tmp_path / "t")
    assert {path: path.stat().st_ino for path in (tmp_path / "t").iterdir()} == before
