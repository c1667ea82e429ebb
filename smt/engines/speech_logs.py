"""Logs of four programs that translate speech: target words with seconds of their recording.

    simulstream      {"id", "metadata": {"wav_name"}} begins a recording; then {"id", "total_audio_processed" (s),
                     "computation_time", "generated_tokens", "deleted_tokens"} after every chunk, by release 1.0
    SimulStreaming   the standard output of one recording, {"emission_time" (s), "text", ...}, of Whisper or of the
                     translation after it; a COMPLETE line replaces those of "status" INCOMPLETE before it
    OmniSTEval       instances.resegmented.jsonl, {"docid", "segid", "prediction", "emission_cu" (ms since the segment's
                     start), "time_to_recording_end" (ms)}: a recording is a docid, and begins with its first segment
    SimulEval        instances.log of speech, {"source": [WAV, ...], "prediction", "delays" (ms)}

Computing time counts in none of them ("emission_time" is the time that SimulStreaming simulates).  A word that a later
line continues ("Vien", then "na") is written at the time of its last piece, as simulstream's own reader has it; deleted
tokens retract the words they belonged to.

Every error is a DataError "FILE:LINE: what is wrong".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from smt.policies.shown import Words, writes
from sqa.core.errors import DataError
from sqa.core.registry import misspelt
from sqa.files.records import numbered_lines

GREATEST = 1e7  # s: four months
Row = dict[str, Any]
Rows = Iterable[tuple[str, int, Row]]  # "FILE:LINE", the line's number, its object


class TimedWord(NamedTuple):
    """A target word and when it was written."""

    seconds: float  # of the recording, >= 0, in ascending order
    token: str  # "" where words are retracted and none follows
    erase: int  # words retracted first
    line: int


@dataclass(frozen=True, slots=True)
class Recording:
    """The translation of one recording."""

    name: str | int | None  # of its file, without folder and ending; a number in the log's order; None = not named
    line: int  # where it begins
    wrote: tuple[TimedWord, ...]


class Shown(NamedTuple):
    """All words of a recording's translation after a line of its log."""

    seconds: float
    line: int
    words: Sequence[str]
    revised: bool = False  # a word was retracted


def words_of(states: Sequence[Shown]) -> tuple[TimedWord, ...]:
    """The words, each once it is complete; what a state lacks of the one before is retracted."""
    words: list[TimedWord] = []
    previous: Words = ()
    for state, complete in zip(states, map(tuple, _whole(states)), strict=True):
        words += (TimedWord(state.seconds, token, erase, state.line) for token, erase in writes(previous, complete))
        previous = complete
    return tuple(words)


def _whole(states: Sequence[Shown]) -> list[Sequence[str]]:
    """The words of each state without a last word that a later state only continues."""
    words, grows = [state.words for state in states], False
    for i in range(len(states) - 2, -1, -1):
        current, following = states[i].words, states[i + 1]
        goes_on = following.words[len(current) - 1 : len(current)] != current[-1:]  # a slice: it may be shorter
        grows = (
            bool(current) and not following.revised and (goes_on or (grows and len(following.words) == len(current)))
        )
        if grows:
            words[i] = current[:-1]
    return words


# ------------------------------------------------------------------------------------------------------- simulstream


@dataclass(slots=True)
class _Stream:
    """A recording in simulstream's log while it is read."""

    name: str
    line: int
    seconds: float = 0.0
    tokens: list[str] = field(default_factory=list)
    shown: list[tuple[float, int, list[str], bool]] = field(default_factory=list)  # tokens, not yet words


def _simulstream(rows: Rows) -> Iterator[Recording]:
    by_name: dict[str, _Stream] = {}  # by name
    by_id: dict[object, _Stream] = {}  # by id; an id may come again, for another recording
    for where, number, row in rows:
        if "metadata" in row:
            name = _wav(where, row["metadata"])
            if name in by_name:
                raise DataError(f"{where}: the recording {name!r} appears twice (line {by_name[name].line})")
            by_name[name] = by_id[_id(where, row)] = _Stream(name, number)
        elif "id" in row:
            stream = by_id.get(_id(where, row))
            if stream is None:
                raise DataError(
                    f'{where}: id {row["id"]!r:.40} has no line with "metadata" before; is the log cut off?'
                )
            _receive(where, number, row, stream)
        elif "model_loading_time" not in row:
            keys = '"id" with "metadata" or "total_audio_processed", or "model_loading_time"'
            raise DataError(f"{where}: expected simulstream's {keys}, got {_keys(row)}")
    joined = _joiner(token for stream in by_name.values() for _, _, tokens, _ in stream.shown for token in tokens)
    for stream in by_name.values():
        if not stream.shown:
            name = f"the recording {stream.name!r}"
            raise DataError(f"{where.rpartition(':')[0]}:{stream.line}: {name} has no other line; is the log cut off?")
        states = [Shown(s, line, joined(tokens).split(), revised) for s, line, tokens, revised in stream.shown]
        yield Recording(stream.name, stream.line, words_of(states))


def _receive(where: str, number: int, row: Row, stream: _Stream) -> None:
    """A line of output."""
    seconds = _seconds(where, "total_audio_processed", row.get("total_audio_processed"))
    if seconds < stream.seconds:
        raise DataError(f"{where}: total_audio_processed is {seconds:g} after {stream.seconds:g}; time never goes back")
    new, gone = (_texts(where, key, row.get(key)) for key in ("generated_tokens", "deleted_tokens"))
    kept = len(stream.tokens) - len(gone)
    if kept < 0 or stream.tokens[kept:] != gone:
        raise DataError(f"{where}: deleted_tokens {gone!r:.60} are not the last ones written")
    stream.seconds, stream.tokens = seconds, [*stream.tokens[:kept], *new]
    stream.shown.append((seconds, number, stream.tokens, bool(gone)))


def _id(where: str, row: Row) -> object:
    if type(row.get("id")) not in (int, str):
        raise DataError(f'{where}: expected a whole number or a text as "id", got {row.get("id")!r:.40}')
    return row["id"]


def _wav(where: str, metadata: object) -> str:
    wav = metadata.get("wav_name") if isinstance(metadata, dict) else None
    if not isinstance(wav, str) or not stem(wav):
        raise DataError(f'{where}: expected "metadata" with a file as "wav_name", got {metadata!r:.60}')
    return stem(wav)


_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")  # of SentencePiece: letters that it has no piece for


def _joiner(tokens: Iterable[str]) -> Callable[[Sequence[str]], str]:
    """Tokens to text: pieces of SentencePiece, of a vocabulary of bytes (GPT-2's), or words."""
    marks = {mark for token in tokens for mark in "▁Ġ" if mark in token}
    if "▁" in marks:
        return lambda pieces: _BYTES.sub(_letters, "".join(pieces).replace("▁", " "))
    if "Ġ" in marks:
        return lambda pieces: bytes(_BYTE_OF.get(c, 63) for c in "".join(pieces)).decode("utf-8", "replace")
    return " ".join


def _letters(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("<0x", "").replace(">", "")).decode("utf-8", "replace")


def _byte_letters() -> dict[str, int]:
    """letter -> byte, as GPT-2 writes bytes: visible ones of Latin-1 as they are, the others from U+0100 on."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTE_OF = _byte_letters()

# ---------------------------------------------------------------------------------------------------- SimulStreaming


def _simulstreaming(rows: Rows) -> Iterator[Recording]:
    states: list[Shown] = []
    text, previous = "", 0.0
    for where, number, row in rows:
        seconds = _seconds(where, "emission_time", row.get("emission_time"))
        if seconds < previous:
            problem = f"emission_time is {seconds:g} after {previous:g}"
            raise DataError(f"{where}: {problem}; time never goes back, one file for each recording")
        if wrong := misspelt(row, ("text", "status")):
            raise DataError(f"{where}: unknown key {wrong}")
        added, status, previous = row.get("text", ""), row.get("status"), seconds
        if not isinstance(added, str):
            raise DataError(f'{where}: expected a text as "text", got {added!r:.40}')
        if status not in (None, "COMPLETE", "INCOMPLETE"):
            raise DataError(f'{where}: expected COMPLETE or INCOMPLETE as "status", got {status!r:.40}')
        if status != "INCOMPLETE":
            text += (
                added if status is None else f" {added}"
            )  # the translation's are whole words, with a blank or without
            states.append(Shown(seconds, number, text.split()))
    yield Recording(None, 1, words_of(states))


# -------------------------------------------------------------------------------------------- OmniSTEval, SimulEval


def _omnisteval(rows: Rows) -> Iterator[Recording]:
    segments = []
    for position, (where, number, row) in enumerate(rows):
        wrong = [key for key in ("index", "docid", "segid") if type(row.get(key)) is not int or row[key] < 0]
        if wrong:
            raise DataError(f'{where}: expected a whole number >= 0 as "{wrong[0]}", got {row.get(wrong[0])!r:.40}')
        if row["index"] != position:
            raise DataError(f"{where}: index {row['index']} where {position} is due; each segment once, in order")
        tokens, times = _tokens(where, row, "emission_cu", least=-GREATEST)
        end = row.get("time_to_recording_end")  # lacking where nothing was written
        if tokens or end is not None:
            end = _seconds(where, "time_to_recording_end", end, 1000)
        segments.append((row["docid"], where, number, tokens, times, end))
    due = 0
    for document, group in groupby(segments, key=itemgetter(0)):
        members = list(group)
        if document != due:
            raise DataError(f"{members[0][1]}: docid {document} where {due} is due; each recording once, in order")
        due += 1
        yield Recording(document, members[0][2], tuple(_of_document(members)))


def _of_document(segments: Sequence[tuple[Any, ...]]) -> list[TimedWord]:
    """The words of a recording's segments by their time, which counts from the first segment's start."""
    words: list[TimedWord] = []
    first = segments[0][-1]
    for _, where, number, tokens, times, end in segments:
        if tokens and first is None:
            problem = "the first segment of its recording has no words, and so no start"
            raise DataError(f"{where}: {problem}; give the log that was segmented instead of this one")
        words += (
            TimedWord(max(0.0, round(first - end + time, 6)), token, 0, number)
            for token, time in zip(tokens, times, strict=True)
        )
    return sorted(words, key=lambda word: word.seconds)  # stable: of one moment, in the order of the segments


def _simuleval(rows: Rows) -> Iterator[Recording]:
    lines: dict[str, int] = {}
    for where, number, row in rows:
        source = row.get("source")
        if not isinstance(source, list) or not source or not isinstance(source[0], str) or not stem(source[0]):
            raise DataError(f'{where}: expected a list as "source", the recording\'s file first, got {source!r:.60}')
        name = stem(source[0])
        if lines.setdefault(name, number) != number:
            raise DataError(f"{where}: the recording {name!r} appears twice (line {lines[name]})")
        tokens, times = _tokens(where, row, "delays")
        wrote = (
            TimedWord(time, token, 0, number) for token, time in zip(tokens, times, strict=True) if token != "</s>"
        )
        yield Recording(name, number, tuple(wrote))


def _tokens(where: str, row: Row, key: str, least: float = 0.0) -> tuple[list[str], list[float]]:
    """The words of "prediction" and their times, seconds, never falling."""
    prediction, times = row.get("prediction"), row.get(key, [])
    if not isinstance(prediction, str) or not isinstance(times, list):
        raise DataError(f'{where}: expected a text "prediction" and a list "{key}", got {_keys(row)}')
    tokens = prediction.split()
    if len(tokens) != len(times):
        raise DataError(f"{where}: {len(tokens)} words but {len(times)} {key}; each word needs one, in milliseconds")
    seconds = [_seconds(where, f"{key}[{i}]", time, 1000, least) for i, time in enumerate(times)]
    for i, (previous, following) in enumerate(pairwise(seconds), 1):
        if following < previous:
            raise DataError(f"{where}: {key}[{i}] is {times[i]:g} after {times[i - 1]:g}; time never goes back")
    return tokens, seconds


# ----------------------------------------------------------------------------------------------------------- reading

READERS: Mapping[str, Callable[[Rows], Iterator[Recording]]] = {
    "simulstream": _simulstream,
    "SimulStreaming": _simulstreaming,
    "OmniSTEval": _omnisteval,
    "SimulEval": _simuleval,
}


def read(path: Path) -> list[Recording]:
    """The recordings of a log, or of a folder with one of SimulStreaming's for each: NAME.jsonl."""
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise DataError(f"{path}: expected a file NAME.jsonl for each recording, found none")
        return [Recording(file.stem, 1, recording.wrote) for file in files for recording in read(file)]
    rows = ((f"{path}:{number}", number, row) for number, row in numbered_lines(path))
    where, number, row = next(rows)
    program = _program(row)
    if program is None:
        programs = "SimulEval's (prediction, delays), simulstream's (id, metadata), SimulStreaming's (emission_time)"
        others = "OmniSTEval's (docid, segid, emission_cu) or a table (index token delay)"
        raise DataError(f"{where}: not a log of a supported program: expected {programs}, {others}, got {_keys(row)}")
    return list(READERS[program](chain([(where, number, row)], rows)))


def _program(row: dict[str, Any]) -> str | None:
    """The key of READERS for a log's first line; None for a line of another program."""
    if "model_loading_time" in row or ("id" in row and ("metadata" in row or "total_audio_processed" in row)):
        return "simulstream"
    if "emission_time" in row:
        return "SimulStreaming"
    if "emission_cu" in row or ("docid" in row and "segid" in row):
        return "OmniSTEval"
    return "SimulEval" if "prediction" in row and isinstance(row.get("source"), list) else None


def stem(file: str) -> str:
    """The name of a recording: its file's, without folder and ending."""
    return PurePosixPath(file.replace("\\", "/")).stem


def _seconds(where: str, key: str, value: object, per_second: float = 1, least: float = 0.0) -> float:
    unit, most = ("milliseconds", GREATEST * 1000) if per_second == 1000 else ("seconds", GREATEST)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not least * per_second <= float(value) <= most:
        raise DataError(f"{where}: {key} must be a number of {unit}, {least:g} to {most:g}, got {_shown(value)}")
    return float(value) / per_second


def _texts(where: str, key: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f'{where}: expected a list of texts as "{key}", got {_shown(value)}')
    return value


def _shown(value: object) -> str:
    return "nothing" if value is None else repr(value)[:40]


def _keys(row: Row) -> str:
    return f"the keys {', '.join(row)[:80]}" if row else "an empty object"
