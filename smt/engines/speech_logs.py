"""What systems that listen wrote, and when: logs of four programs as words with seconds of their recording.

    simulstream      {"id", "metadata": {"wav_name"}} begins a recording; then {"id", "total_audio_processed" (s),
                     "computation_time", "generated_tokens", "deleted_tokens"} after every chunk, by release 1.0
    SimulStreaming   the standard output of one recording, {"emission_time" (s), "text", ...}, of Whisper or of the
                     translation after it, where lines of "status" INCOMPLETE are said again by a COMPLETE one
    OmniSTEval       instances.resegmented.jsonl, {"docid", "segid", "prediction", "emission_cu" (ms since the segment's
                     start), "time_to_recording_end" (ms)}: a recording is a docid, and begins with its first segment
    SimulEval        instances.log of speech, {"source": [WAV, ...], "prediction", "delays" (ms)}

Computing time counts in none of them ("emission_time" is what SimulStreaming was asked to simulate).  A word that a
later line only goes on with ("Vien", then "na") is written where it became whole, which gives the delays of
simulstream's own reader; where tokens are deleted, the words that are no longer there are taken back.

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

from sqa.core.errors import DataError
from sqa.core.registry import misspelt
from sqa.files.records import numbered_lines

GREATEST = 1e7  # s: four months
Row = dict[str, Any]
Rows = Iterable[tuple[str, int, Row]]  # "FILE:LINE", the line's number, what it says


class Wrote(NamedTuple):
    """A target word and when it was written."""

    seconds: float  # of the recording, >= 0, never falling
    token: str  # "" where words are taken back and none follows
    erase: int  # words taken back first
    line: int


@dataclass(frozen=True, slots=True)
class Recording:
    """All that was written of one recording."""

    name: str | int | None  # of its file, without folder and ending; a number in the log's order; None = not said
    line: int  # where it begins
    wrote: tuple[Wrote, ...]


class Shown(NamedTuple):
    """All words of a recording that stand after a line of its log."""

    seconds: float
    line: int
    words: Sequence[str]
    revised: bool = False  # something was taken back


def words_of(shown: Sequence[Shown]) -> tuple[Wrote, ...]:
    """The words, each once it is whole; what one state lacks of the state before is taken back."""
    found: list[Wrote] = []
    before: Sequence[str] = ()
    for state, whole in zip(shown, _whole(shown), strict=True):
        same = next((i for i, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), None)
        same = min(len(before), len(whole)) if same is None else same
        erase, new = len(before) - same, whole[same:] or [""] * (len(before) > same)
        found += (Wrote(state.seconds, word, 0 if i else erase, state.line) for i, word in enumerate(new))
        before = whole
    return tuple(found)


def _whole(shown: Sequence[Shown]) -> list[Sequence[str]]:
    """The words of each state without a last one that a later state only goes on with."""
    found, grows = [state.words for state in shown], False
    for i in range(len(shown) - 2, -1, -1):
        now, after = shown[i].words, shown[i + 1]
        goes_on = after.words[len(now) - 1 : len(now)] != now[-1:]  # a slice: half a letter may turn out to be a blank
        grows = bool(now) and not after.revised and (goes_on or (grows and len(after.words) == len(now)))
        if grows:
            found[i] = now[:-1]
    return found


# ------------------------------------------------------------------------------------------------------- simulstream


@dataclass(slots=True)
class _Heard:
    """A recording of simulstream's while its log is read."""

    name: str
    line: int
    seconds: float = 0.0
    tokens: list[str] = field(default_factory=list)
    shown: list[tuple[float, int, list[str], bool]] = field(default_factory=list)  # tokens, not yet words


def _simulstream(rows: Rows) -> Iterator[Recording]:
    begun: dict[str, _Heard] = {}  # by name
    of: dict[object, _Heard] = {}  # by id; an id may come again, for another recording
    for where, number, row in rows:
        if "metadata" in row:
            name = _wav(where, row["metadata"])
            if name in begun:
                first = begun[name].line
                raise DataError(f"{where}: the recording {name!r} is there twice (line {first}); one log, one run each")
            begun[name] = of[_id(where, row)] = _Heard(name, number)
        elif "id" in row:
            heard = of.get(_id(where, row))
            if heard is None:
                lacks = f'id {row["id"]!r:.40} has no line with "metadata" before'
                raise DataError(f"{where}: {lacks}; is the log cut off?")
            _hear(where, number, row, heard)
        elif "model_loading_time" not in row:
            keys = '"id" with "metadata" or "total_audio_processed", or "model_loading_time"'
            raise DataError(f"{where}: expected simulstream's {keys}, got {_keys(row)}")
    joined = _joiner(token for heard in begun.values() for _, _, tokens, _ in heard.shown for token in tokens)
    for heard in begun.values():
        if not heard.shown:
            name = f"the recording {heard.name!r}"
            raise DataError(f"{where.rpartition(':')[0]}:{heard.line}: {name} has no other line; is the log cut off?")
        states = [Shown(s, line, joined(tokens).split(), revised) for s, line, tokens, revised in heard.shown]
        yield Recording(heard.name, heard.line, words_of(states))


def _hear(where: str, number: int, row: Row, heard: _Heard) -> None:
    """A line of output."""
    seconds = _seconds(where, "total_audio_processed", row.get("total_audio_processed"))
    _seconds(where, "computation_time", row.get("computation_time"))
    if seconds < heard.seconds:
        raise DataError(f"{where}: total_audio_processed is {seconds:g} after {heard.seconds:g}; time never goes back")
    new, gone = (_texts(where, key, row.get(key)) for key in ("generated_tokens", "deleted_tokens"))
    kept = len(heard.tokens) - len(gone)
    if kept < 0:
        raise DataError(f"{where}: deleted_tokens has {len(gone)} tokens, but only {len(heard.tokens)} were written")
    for token, stood in zip(gone, heard.tokens[kept:], strict=True):
        if token != stood:
            raise DataError(f"{where}: deleted_tokens has {token!r:.40} where {stood!r:.40} was written")
    heard.seconds, heard.tokens = seconds, [*heard.tokens[:kept], *new]
    heard.shown.append((seconds, number, heard.tokens, bool(gone)))


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
    """What makes a text of tokens: pieces of SentencePiece, of a vocabulary of bytes (GPT-2's), or words."""
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
    shown: list[Shown] = []
    text, before = "", 0.0
    for where, number, row in rows:
        seconds = _seconds(where, "emission_time", row.get("emission_time"))
        if seconds < before:
            also = "one file for each recording"
            raise DataError(f"{where}: emission_time is {seconds:g} after {before:g}; time never goes back, {also}")
        if wrong := misspelt(row, ("text", "status")):
            raise DataError(f"{where}: unknown key {wrong}")
        said, status, before = row.get("text", ""), row.get("status"), seconds
        if not isinstance(said, str):
            raise DataError(f'{where}: expected a text as "text", got {said!r:.40}')
        if status not in (None, "COMPLETE", "INCOMPLETE"):
            raise DataError(f'{where}: expected COMPLETE or INCOMPLETE as "status", got {status!r:.40}')
        if status != "INCOMPLETE":
            text += said if status is None else f" {said}"  # the translation's are whole words, with a blank or without
            shown.append(Shown(seconds, number, text.split()))
    yield Recording(None, 1, words_of(shown))


# -------------------------------------------------------------------------------------------- OmniSTEval, SimulEval


def _omnisteval(rows: Rows) -> Iterator[Recording]:
    segments = []
    for place, (where, number, row) in enumerate(rows):
        wrong = [key for key in ("index", "docid", "segid") if type(row.get(key)) is not int or row[key] < 0]
        if wrong:
            raise DataError(f'{where}: expected a whole number >= 0 as "{wrong[0]}", got {row.get(wrong[0])!r:.40}')
        if row["index"] != place:
            raise DataError(f"{where}: index {row['index']} where {place} is due; each segment once, in order")
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


def _of_document(segments: Sequence[tuple[Any, ...]]) -> list[Wrote]:
    """The words of a recording's segments by their time, which counts from the first segment's start."""
    found: list[Wrote] = []
    first = segments[0][-1]
    for _, where, number, tokens, times, end in segments:
        if tokens and first is None:
            lacks = 'the first segment of its recording has no words, so no "time_to_recording_end"'
            raise DataError(f"{where}: {lacks}; give the log that was segmented in place of this one")
        found += (
            Wrote(max(0.0, round(first - end + time, 6)), token, 0, number)
            for token, time in zip(tokens, times, strict=True)
        )
    return sorted(found, key=lambda word: word.seconds)  # stable: of one moment, in the order of the segments


def _simuleval(rows: Rows) -> Iterator[Recording]:
    begun: dict[str, int] = {}
    for where, number, row in rows:
        source = row.get("source")
        if not isinstance(source, list) or not source or not isinstance(source[0], str) or not stem(source[0]):
            raise DataError(f'{where}: expected a list as "source", the recording\'s file first, got {source!r:.60}')
        name = stem(source[0])
        if begun.setdefault(name, number) != number:
            raise DataError(f"{where}: the recording {name!r} is there twice (line {begun[name]})")
        tokens, times = _tokens(where, row, "delays")
        wrote = (Wrote(time, token, 0, number) for token, time in zip(tokens, times, strict=True) if token != "</s>")
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
    for i, (before, after) in enumerate(pairwise(seconds), 1):
        if after < before:
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
        return [Recording(file.stem, 1, each.wrote) for file in files for each in read(file)]
    rows = ((f"{path}:{number}", number, row) for number, row in numbered_lines(path))
    where, number, row = next(rows)
    program = _program(row)
    if program is None:
        known = "SimulEval's (prediction, delays), simulstream's (id, metadata), SimulStreaming's (emission_time)"
        also = "OmniSTEval's (docid, segid, emission_cu) or a table (index token delay)"
        raise DataError(f"{where}: a log of no program known here: expected {known}, {also}, got {_keys(row)}")
    return list(READERS[program](chain([(where, number, row)], rows)))


def _program(row: dict[str, Any]) -> str | None:
    """Which of READERS a log's first line belongs to; None for none of them."""
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
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is None or not least * per_second <= number <= most:
        got = "nothing" if value is None else repr(value)[:40]
        raise DataError(f"{where}: {key} must be a number of {unit}, {least:g} to {most:g}, got {got}")
    return number / per_second


def _texts(where: str, key: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        got = "nothing" if value is None else repr(value)[:40]
        raise DataError(f'{where}: expected a list of texts as "{key}", got {got}')
    return value


def _keys(row: Row) -> str:
    return f"the keys {', '.join(row)[:80]}" if row else "an empty object"
