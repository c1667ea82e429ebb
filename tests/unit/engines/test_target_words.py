"""Oddities in target text: each has the same effect in every reader."""

import json
from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from smt.engines import command, fixed, recorded
from sqa.core.errors import DataError
from sqa.core.types import Question

TABLES = tables_of(__file__)

WORDS = ("The", "laser", "rose")
SOURCE = ("El", "láser", "subió")
QUESTION = Question("q", "test", "es", (SOURCE,), (" ".join(WORDS),), "Laser")
CLEANED = TABLES["cleaned"]


def log_of(folder: Path, words: tuple[str, ...]) -> Path:
    return write(folder, {"index": 0, "prediction": " ".join(words), "delays": [3] * len(words), "source_length": 3})


def simulstream(folder: Path, words: tuple[str, ...]) -> Path:
    output = {"id": 0, "total_audio_processed": 1.0, "generated_tokens": list(words), "deleted_tokens": []}
    return write(folder, {"id": 0, "metadata": {"wav_name": "q.wav"}}, output)


def simulstreaming(folder: Path, words: tuple[str, ...]) -> Path:
    return write(folder, {"emission_time": 1.0, "text": " ".join(words), "status": "COMPLETE"})


def write(folder: Path, *rows: dict) -> Path:
    path = folder / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(reader: str, folder: Path, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the target words that a reader of files finds."""
    if reader == "fixed":
        path = folder / "t.txt"
        path.write_text(" ".join(words) + "\n", encoding="utf-8")
        translator = fixed.build(fixed.FixedConfig(str(path)))
        translator.check([QUESTION])
        return tuple(emission.token for emission in translator.translate_batch([QUESTION])[0])
    if reader == "command":
        (folder / "t.txt").write_text(" ".join(words) + "\n", encoding="utf-8")
        [written] = command.Engine(command.CommandConfig(["cat", str(folder / "t.txt")])).words(["El láser subió"])
        return written
    if reader == "log":
        translator = recorded.build(recorded.RecordedConfig(str(log_of(folder, words))))
        translator.check([QUESTION])
        return tuple(emission.token for emission in translator.translate_batch([QUESTION])[0])
    from smt.engines import speech_logs

    make = simulstream if reader == "simulstream" else simulstreaming
    [recording] = speech_logs.read(make(folder, words))
    return tuple(word.token for word in recording.wrote if word.token)


READERS = ("fixed", "command", "log", "simulstream", "SimulStreaming")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("oddity", CLEANED)
def test_oddity_is_cleaned_and_reported(reader, oddity, tmp_path, capsys):
    words, message = CLEANED[oddity]
    assert read(reader, tmp_path, words) == WORDS
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("reader", READERS)
def test_decomposed_letters_are_composed(reader, tmp_path, capsys):
    assert read(reader, tmp_path, ("The", "cafe\u0301", "rose")) == ("The", "caf\u00e9", "rose")
    assert "decomposed letters are composed, such as cafe\u0301" in capsys.readouterr().err


@pytest.mark.parametrize("reader", READERS)
def test_plain_words_are_kept_silently(reader, tmp_path, capsys):
    assert read(reader, tmp_path, ("R&D", "<3", "a@b")) == ("R&D", "<3", "a@b")
    assert not capsys.readouterr().err


@pytest.mark.parametrize("reader", READERS)
def test_undecoded_bytes_are_refused(reader, tmp_path):
    refused(DataError, "has U\\+FFFD", read, reader, tmp_path, ("The", "la\ufffder", "rose"))


@pytest.mark.parametrize("reader", ["fixed", "command", "log", "simulstream"])
@pytest.mark.parametrize("piece", ["▁laser", "la@@"])
def test_pieces_of_words_are_refused(reader, piece, tmp_path):
    refused(DataError, "piece", read, reader, tmp_path, ("The", piece, "rose"))


@pytest.mark.parametrize("line", ["D-0\t-0.41\tThe laser rose", '{"text": "The laser rose"}'])
def test_other_format_is_not_read_as_plain_text(line, tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(line + "\n", encoding="utf-8")
    refused(DataError, "expected one translation in plain text", fixed.build, fixed.FixedConfig(str(path)))


def test_retraction_counts_words_without_marks(tmp_path):
    first = {"id": 0, "total_audio_processed": 1.0, "generated_tokens": ["The", "<pad>", "maser"], "deleted_tokens": []}
    second = first | {"total_audio_processed": 2.0, "generated_tokens": ["laser"], "deleted_tokens": ["<pad>", "maser"]}
    from smt.engines import speech_logs

    [recording] = speech_logs.read(write(tmp_path, {"id": 0, "metadata": {"wav_name": "q.wav"}}, first, second))
    assert [(word.token, word.erase) for word in recording.wrote] == [("The", 0), ("maser", 0), ("laser", 1)]
