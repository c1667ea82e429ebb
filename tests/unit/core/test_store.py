"""Files appear whole or not at all, with the same bytes every time; a damaged one is named with its remedy."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
import yaml
from doubles import echo, question, write_questions
from older_tables import as_older_versions_wrote

from sqa.core import trace as tr
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.core.trace import BUZZES, EMISSIONS, Score, emissions_rows, emissions_table
from sqa.core.types import Buzz, Guess
from sqa.files.atomic import atomic, atomic_folder, claimed, write_text
from sqa.files.store import Stage, Store, dataset_fingerprint, read_emissions, read_table, write_table

Q = question()
TABLE = emissions_table({Q.id: echo(Q)})
STAGE = Stage("translate", "m:build", "f", (), "d", 64)


def test_a_block_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.missing(STAGE, 2) == [0, 1]
    store.write(STAGE, 1, TABLE)
    assert store.missing(STAGE, 2) == [0]
    assert emissions_rows(store.read(STAGE, 1, EMISSIONS)) == {Q.id: echo(Q)}


@pytest.mark.parametrize(
    ("field", "value"),
    list(
        {
            "name": "guess",
            "implementation": "o",
            "fingerprint": "g",
            "upstream": ("k",),
            "dataset": "e",
            "block_size": 32,
        }.items()
    ),
)
def test_everything_that_can_change_the_rows_is_in_the_key(field: str, value: object) -> None:
    assert replace(STAGE, **{field: value}).key != STAGE.key


def test_the_dataset_fingerprint_sees_every_field() -> None:
    values = {"id": "r", "dataset": "e", "language": "pl", "sentences": (("uno",),), "reference": (), "page": "X"}
    changed = [replace(Q, **{name: value}) for name, value in values.items()]
    assert len({dataset_fingerprint([q]) for q in [Q, *changed]}) == 7
    assert dataset_fingerprint([Q, changed[0]]) != dataset_fingerprint([changed[0], Q])


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_truncated_block_is_one_clear_line(tmp_path: Path, keep: int) -> None:
    store = Store(tmp_path)
    store.write(STAGE, 0, TABLE)
    path = store.block(STAGE, 0)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError) as caught:
        store.read(STAGE, 0, EMISSIONS)
    assert str(caught.value) == f"{path}: truncated or damaged, not a readable table; delete it and run again"


def test_a_flipped_byte_never_gives_other_rows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(STAGE, 0, TABLE)
    path = store.block(STAGE, 0)
    whole = path.read_bytes()
    for at in range(0, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(DataError, match="delete it and run again"):
            store.read(STAGE, 0, EMISSIONS)


def test_a_foreign_block_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(STAGE, 0, TABLE)
    store.block(STAGE, 0).rename(store.block(STAGE, 1))
    with pytest.raises(DataError, match=r"holds block 0, expected 1; delete it"):
        store.read(STAGE, 1, EMISSIONS)
    with pytest.raises(DataError, match="is missing"):
        store.read(STAGE, 0, EMISSIONS)


def test_rows_of_another_question_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(STAGE, 0, TABLE)
    with pytest.raises(DataError, match=r"block-0000\.npz: has rows of 'q', not a question of this block; delete it"):
        read_emissions(store, STAGE, 0, [replace(Q, id="other")])


def test_other_columns_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "x.npz", TABLE, {})
    with pytest.raises(DataError, match="has the columns .* expected"):
        read_table(tmp_path / "x.npz", BUZZES, {})


GUESSED = {"q": ((Guess("Lima", 1.0), Guess("Cusco", 0.5)), ()), "r": ((Guess("Lima", 2.0),),)}
SCORED = {"q": {"ew": Score((1.0, 2.0)), "al": Score(None, "no words")}}
OLDER = [
    (tr.EMISSIONS, TABLE, emissions_rows, {Q.id: echo(Q)}),
    (tr.GUESSES, tr.guesses_table(GUESSED), tr.guesses_rows, GUESSED),
    (tr.BUZZES, tr.buzzes_table({"q": (Buzz(0.5, True),)}), tr.buzzes_rows, {"q": (Buzz(0.5, True),)}),
    (tr.SCORES, tr.scores_table(SCORED), tr.scores_rows, SCORED),
    (tr.SCORES, tr.scores_table({}), tr.scores_rows, {}),
]


@pytest.mark.parametrize(("schema", "table", "rows_of", "rows"), OLDER)
def test_a_store_that_an_earlier_version_filled_is_found(tmp_path: Path, schema, table, rows_of, rows) -> None:
    store = Store(tmp_path)
    older = store.block(STAGE, 1).with_suffix(".parquet")
    older.parent.mkdir(parents=True)
    as_older_versions_wrote(older, table, {"key": STAGE.key, "stage": STAGE.name, "block": "1"})
    assert store.has(STAGE, 1) and store.missing(STAGE, 2) == [0]
    assert rows_of(store.read(STAGE, 1, schema)) == rows
    older.write_bytes(older.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"block-0001.parquet: truncated or damaged, .*; delete it and run again"):
        store.read(STAGE, 1, schema)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ConfigError, match=r"in Parquet, needs the Python package pyarrow: pip install 'sqa\[parquet\]'"
    ):
        read_table(tmp_path / "x.npz", EMISSIONS, {})


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "old"


def test_what_a_killed_run_left_behind_is_overwritten(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.block(STAGE, 0)
    path.parent.mkdir(parents=True)
    path.with_name(f".{path.name}.partial").write_bytes(b"half")
    assert store.missing(STAGE, 1) == [0]
    store.write(STAGE, 0, TABLE)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_second_run_of_a_stage_waits_for_the_first(tmp_path: Path) -> None:
    store, order = Store(tmp_path), []

    def second() -> None:
        with store.working_on(STAGE):
            order.append("second")

    with store.working_on(STAGE):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(timeout=0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


SAME_RUN = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from sqa.run.config import load_run
from sqa.run.pipeline import run
from sqa.run.saving import save
from sqa.files.store import read_emissions, Store
sys.stdin.readline()
for number in range({rounds}):
    runs = Path({folder!r}) / str(number)
    save(run(load_run(Path({config!r})), Store(runs), progress=False), runs)
"""


def test_four_equal_runs_at_once_all_succeed_and_write_the_same(tmp_path: Path) -> None:
    config = tmp_path / "same.yaml"
    mapping = {
        "dataset": {"name": str(write_questions(tmp_path / "questions.jsonl", 6))},
        "translator": {"name": "doubles:build_translator"},
        "guesser": {"name": "doubles:build_guesser"},
        "buzzer": {"name": "doubles:build_buzzer"},
        "metrics": ["ew", "accuracy"],
    }
    config.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    runs, tests, rounds = str(tmp_path / "runs"), str(Path(__file__).parents[2]), 4
    code = SAME_RUN.format(tests=tests, rounds=rounds, folder=runs, config=str(config))
    command = [sys.executable, "-c", code]
    four = [Popen(command, cwd=ROOT, stdin=PIPE, stderr=PIPE, text=True) for _ in range(4)]
    for process in four:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in four]
    assert [process.returncode for process in four] == [0] * 4, "\n".join(errors)
    folders = [tmp_path / "runs" / str(number) for number in range(rounds)]
    assert not [path for folder in folders for path in folder.rglob("*.partial")]
    for name in ("config.yaml", "run.json", "stats.npz", "report.tsv"):
        assert len({(folder / "same" / name).read_bytes() for folder in folders}) == 1
    assert all(json.loads((folder / "same" / "times.json").read_text()) for folder in folders)  # the maker's are kept


def test_writers_at_once_have_files_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    with atomic(path) as first, atomic(path) as second:
        first.write_text("first")
        second.write_text("second")
        assert first != second and not path.exists()
    assert path.read_text() == "first"  # which ended last
    assert [p.name for p in tmp_path.iterdir()] == ["x.txt"]


def test_two_who_fill_the_same_folder_at_once_do_not_meet(tmp_path: Path) -> None:
    """The first to end has it; the other is told, and what it wrote goes, as does what a killed one left."""
    path = tmp_path / "model"
    (tmp_path / ".model.0123.partial" / "inner").mkdir(parents=True)
    with pytest.raises(ConfigError, match="model: exists already; name a new folder"):
        with atomic_folder(path) as first:
            (first / "a").write_text("first")
            with atomic_folder(path) as second:
                assert first != second and first.is_dir()
                (second / "a").write_text("second")
    assert [p.name for p in tmp_path.iterdir()] == ["model"] and (path / "a").read_text() == "second"


def test_a_claimed_folder_says_who_has_it(tmp_path: Path) -> None:
    with claimed(tmp_path / "work"):
        with (
            pytest.raises(ConfigError, match=rf"work: process {os.getpid()} on \S+ is working in it"),
            claimed(tmp_path / "work"),
        ):
            pass
    with claimed(tmp_path / "work"):
        pass


def test_a_full_disk_names_the_file(tmp_path):
    with pytest.raises(OSError) as caught, atomic(tmp_path / "table.npz"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "table.npz") and not list(tmp_path.iterdir())
