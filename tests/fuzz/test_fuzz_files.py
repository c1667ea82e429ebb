"""Every reader handles corrupted files: no traceback, no hang, a valid exit code, and the file name in the error.

`SQA_FUZZ=10000 pytest tests/fuzz` reads 10,000 corrupted files; the default is 500.
"""

import os
import random
from pathlib import Path

import pytest
from fuzz.file_readers import Reader, attempt, readers
from fuzz.model_readers import model_readers

COUNT = int(os.environ.get("SQA_FUZZ", "500"))
SEED = os.environ.get("SQA_FUZZ_SEED", "1")
READERS = [*readers(), *model_readers()]
SHARES = sum(reader.share for reader in READERS)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_corrupted_file_is_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    codes, problems = [], []
    for number in range(max(1, round(COUNT * reader.share / SHARES))):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = reader.corrupt(random.Random(f"{SEED} {reader.name} {number}"), folder)
        outcome = attempt(reader, folder)
        codes.append(outcome.code)
        if problem := outcome.problem(path, reader):
            problems.append(f"case {number} (SQA_FUZZ_SEED={SEED}): {problem}")
    assert not problems, "\n\n".join(problems[:5])
    assert len(codes) < 30 or any(codes), "nothing was refused: is the file read at all?"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_valid_file_is_read(reader: Reader, tmp_path: Path) -> None:
    """A reader that refuses every file would pass the test of corrupted files."""
    sound = Reader(reader.name, reader.files, reader.corrupted, [lambda _, data: data], reader.read, reader.folder)
    sound.corrupt(random.Random(1), tmp_path)
    outcome = attempt(sound, tmp_path)
    assert (outcome.code, outcome.traceback) == (0, ""), outcome.said
