"""Files are written atomically with reproducible bytes, and errors name the damaged file and the remedy."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from doubles import echo, question
from refusals import refused

from sqa.core import Asked, ConfigError, DataError, emissions_rows
from sqa.core.trace import BUZZES, EMISSIONS, emissions_table
from sqa.data.datasets import load_questions
from sqa.files import Stage, Store, claimed, dataset_fingerprint, digest, read_rows, write_text
from sqa.files.atomic import atomic

Q = question()
TABLE = emissions_table({Q.id: echo(Q)})
STAGE = Stage("translate", "m:build", "f", (), "d", 64)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store that holds the second of two blocks."""
    made = Store(tmp_path)
    assert made.missing(STAGE, 2) == [0, 1]
    made.write(STAGE, 1, TABLE)
    return made


def test_block_round_trips(store: Store) -> None:
    assert store.missing(STAGE, 2) == [0]
    assert emissions_rows(store.read(STAGE, 1, EMISSIONS)) == {Q.id: echo(Q)}


def test_key_contains_all_inputs_of_the_rows() -> None:
    changes = {"name": "guess", "implementation": "o", "fingerprint": "g", "upstream": ("k",), "dataset": "e"}
    changed = [replace(STAGE, **{field: value}) for field, value in {**changes, "block_size": 32}.items()]
    assert len({stage.key for stage in [STAGE, *changed]}) == 7
    values = {"id": "r", "dataset": "e", "language": "pl", "sentences": (("uno",),), "reference": (), "page": "X"}
    values |= {"word_times": (1.0,) * 5, "asked": Asked("Who?", ("Peru",), 1)}
    questions = [replace(Q, **{name: value}) for name, value in values.items()]
    assert len({dataset_fingerprint([q]) for q in [Q, *questions]}) == 9
    assert dataset_fingerprint([Q, questions[0]]) != dataset_fingerprint([questions[0], Q])


def test_keys_are_canonical_json_in_utf_8() -> None:
    """Existing store keys depend on this format."""
    text = '{"a":[1.5,null,true],"ż":"ñ"}'
    assert digest({"ż": "ñ", "a": (1.5, None, True)}) == hashlib.sha256(text.encode()).hexdigest()


def test_questions_round_trip_through_the_store(tmp_path: Path) -> None:
    store, questions = Store(tmp_path), load_questions("mini-pl", 5)
    given = store.keep(questions)
    assert given == dataset_fingerprint(questions) == store.keep(questions) and store.kept(given) == questions
    [path] = tmp_path.rglob("questions.jsonl")
    for damage in (b"", path.read_bytes().replace(b'"pl"', b'"es"'), b'{"id": 1}\n', b"[]\n", b"{"):
        path.write_bytes(damage)
        refused(DataError, r"questions\.jsonl: the questions .*delete the file", store.kept, given)


def test_damaged_or_truncated_file_is_refused(store: Store) -> None:
    path = store.block(STAGE, 1)
    whole = path.read_bytes()
    damaged = [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(0, len(whole), 11)]
    for data in [*damaged, b"", whole[:100], whole[:-1]]:
        path.write_bytes(data)
        refused(DataError, f"{path}: .*delete it and run again", store.read, STAGE, 1, EMISSIONS)


def test_invalid_blocks_rows_and_columns_are_refused(store: Store) -> None:
    refused(DataError, r"has rows of 'q'.*; delete it", read_rows, store, STAGE, 1, [replace(Q, id="other")])
    refused(DataError, "has the columns .* expected", store.read, STAGE, 1, BUZZES)
    store.block(STAGE, 1).rename(store.block(STAGE, 0))
    refused(DataError, r"has block 1, expected 0; delete it", store.read, STAGE, 0, EMISSIONS)
    refused(DataError, "is missing", store.read, STAGE, 1, EMISSIONS)


# ------------------------------------------------------------------------------------------- writers and locks


def test_concurrent_writers_and_failed_writes_are_safe(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    with atomic(path) as first, atomic(path) as second:
        first.write_text("first")
        second.write_text("second")
        assert first != second and not path.exists()
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "first"  # written by the last writer to finish
    assert [p.name for p in tmp_path.iterdir()] == ["x.txt"]


def test_claimed_folder_is_refused(tmp_path: Path) -> None:
    for _ in range(2):
        with claimed(tmp_path / "work"):
            with pytest.raises(ConfigError, match="work: another process is working in it"):
                with claimed(tmp_path / "work"):
                    pass
