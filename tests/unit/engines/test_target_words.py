"""Oddities in target text: each has the same effect in every reader."""

import json
import sys
from pathlib import Path

import pytest
from refusals import refused
from tables import tables_of

from smt.engines import command, fixed, llm_replies, recorded
from sqa.core import DataError, Question
from sqa.metrics.latency_log import LogOptions
from sqa.questions.texts import translated
from sqa_services.protocols import submission

TABLES = tables_of(__file__)

WORDS = ("The", "laser", "rose")
SOURCE = ("El", "láser", "subió")
QUESTION = Question("q", "test", "es", (SOURCE,), (" ".join(WORDS),), "Laser")
CLEANED, REFUSED = TABLES["cleaned"], TABLES["refused"]


def log_of(folder: Path, words: tuple[str, ...]) -> Path:
    return write(
        folder,
        {"index": 0, "prediction": " ".join(words), "delays": [3] * len(" ".join(words).split()), "source_length": 3},
    )


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
    if reader == "submission":
        rows = [{"question": "q", "step": i, "token": word, "g": 3} for i, word in enumerate(words)]
        traces = submission.traces_of(map(json.dumps, rows), [QUESTION], problems := [])
        if problems:
            raise DataError(problems[0])
        return tuple(emission.token for emission in traces[0].emissions)
    if reader == "reply":
        asked = llm_replies.Asked(" ".join(SOURCE), (), "", ("es", "en"), joined=False)
        found, problems = llm_replies.translation(" ".join(words), asked)
        if "pieces" in problems or "undecodable" in problems:
            raise DataError(" ".join(problems))
        print(*problems, file=sys.stderr)
        return found
    from smt.engines import speech_logs

    if reader in ("questions", "log for questions"):
        path = log_of(folder, words) if reader == "log for questions" else folder / "t.txt"
        if reader == "questions":
            path.write_text(" ".join(words) + "\n", encoding="utf-8")
        return translated(str(path), LogOptions(), speech_logs.read).segments[0].words
    make = simulstream if reader == "simulstream" else simulstreaming
    [recording] = speech_logs.read(make(folder, words))
    return tuple(word.token for word in recording.wrote if word.token)


FILES = ("fixed", "command", "log", "simulstream", "SimulStreaming", "questions", "log for questions")
READERS = (*FILES, "submission", "reply")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("oddity", CLEANED)
def test_oddity_is_cleaned_and_reported(reader, oddity, tmp_path, capsys):
    words, message = CLEANED[oddity]
    if reader == "submission":  # has a row for each word, so nothing can be dropped
        refused(DataError, "write the words|one word without", read, reader, tmp_path, words)
        return
    assert read(reader, tmp_path, words) == WORDS
    said = capsys.readouterr().err
    assert (message in said) if reader != "reply" else (bool(said.strip()) == bool(message))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("oddity", REFUSED)
def test_damage_and_pieces_are_refused(reader, oddity, tmp_path):
    words, message = REFUSED[oddity]
    refused(DataError, message, read, reader, tmp_path, words)


@pytest.mark.parametrize("reader", FILES)
def test_decomposed_letters_are_composed(reader, tmp_path, capsys):
    assert read(reader, tmp_path, ("The", "cafe\u0301", "rose")) == ("The", "caf\u00e9", "rose")
    assert "decomposed letters are composed, such as cafe\u0301" in capsys.readouterr().err


@pytest.mark.parametrize("reader", READERS)
def test_plain_words_are_kept_silently(reader, tmp_path, capsys):
    words = ("R&D;", "<3", "a@b", "#1", "[sic]", "me@@home", "Ġorġ")
    assert read(reader, tmp_path, words) == words
    assert not capsys.readouterr().err.strip()


@pytest.mark.parametrize("line", TABLES["other_format_is_not_read_as_plain_text"])
def test_other_format_is_not_read_as_plain_text(line, tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(line + "\n", encoding="utf-8")
    refused(DataError, "expected one sentence in plain text", fixed.build, fixed.FixedConfig(str(path)))


def test_retraction_counts_words_without_marks(tmp_path):
    first = {"id": 0, "total_audio_processed": 1.0, "generated_tokens": ["The", "<pad>", "maser"], "deleted_tokens": []}
    second = first | {"total_audio_processed": 2.0, "generated_tokens": ["laser"], "deleted_tokens": ["<pad>", "maser"]}
    from smt.engines import speech_logs

    [recording] = speech_logs.read(write(tmp_path, {"id": 0, "metadata": {"wav_name": "q.wav"}}, first, second))
    assert [(word.token, word.erase) for word in recording.wrote] == [("The", 0), ("maser", 0), ("laser", 1)]
