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

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from smt.policies.shown import Words, writes
from sqa.core.errors import DataError
from sqa.core.registry import misspelt
from sqa.files.records import converted, numbered_lines

GREATEST = 1e7  # s: four months
Rows = Iterable[tuple[str, int, dict[str, Any]]]  # "FILE:LINE", the line's number, its object
Whole = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0, le=GREATEST)]
Milliseconds = Annotated[float, Meta(ge=0, le=1000 * GREATEST)]
SinceSegment = Annotated[float, Meta(ge=-1000 * GREATEST, le=1000 * GREATEST)]  # ms


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
        grows = goes_on or (grows and len(following.words) == len(current))
        grows = grows and bool(current) and not following.revised
        if grows:
            words[i] = current[:-1]
    return words


# ------------------------------------------------------------------------------------------------------- simulstream


class _Stream(NamedTuple):
    """A recording in simulstream's log while it is read."""

    name: str
    line: int
    shown: list[Shown]  # of tokens, not yet words


class Wav(Struct):
    """What simulstream says of a recording."""

    wav_name: str


class Begins(Struct):
    """The line that begins a recording."""

    id: int | str
    metadata: Wav


class Output(Struct):
    """A line of output."""

    id: int | str
    total_audio_processed: Seconds
    generated_tokens: list[str]
    deleted_tokens: list[str]


def _simulstream(rows: Rows) -> Iterator[Recording]:
    by_name: dict[str, _Stream] = {}
    by_id: dict[int | str, _Stream] = {}  # an id may come again, for another recording
    for where, number, row in rows:
        if "metadata" in row:
            begins = converted(where, row, Begins)
            name = stem(begins.metadata.wav_name)
            if name in by_name:
                raise DataError(f"{where}: the recording {name!r} appears twice (line {by_name[name].line})")
            by_name[name] = by_id[begins.id] = _Stream(name, number, [])
        elif "id" in row:
            output = converted(where, row, Output)
            if output.id not in by_id:
                problem = f'id {output.id!r:.40} has no line with "metadata" before'
                raise DataError(f"{where}: {problem}; is the log cut off?")
            by_id[output.id].shown.append(_after(where, number, output, by_id[output.id].shown))
        elif "model_loading_time" not in row:
            keys = '"id" with "metadata" or "total_audio_processed", or "model_loading_time"'
            raise DataError(f"{where}: expected simulstream's {keys}, got {_keys(row)}")
    joined = _joiner(token for stream in by_name.values() for state in stream.shown for token in state.words)
    for stream in by_name.values():
        if not stream.shown:
            name = f"the recording {stream.name!r}"
            raise DataError(f"{where.rpartition(':')[0]}:{stream.line}: {name} has no other line; is the log cut off?")
        states = [state._replace(words=joined(state.words).split()) for state in stream.shown]
        yield Recording(stream.name, stream.line, words_of(states))


def _after(where: str, number: int, output: Output, shown: Sequence[Shown]) -> Shown:
    """The tokens after a line of output."""
    seconds, gone = output.total_audio_processed, output.deleted_tokens
    before = shown[-1] if shown else Shown(0.0, number, [])
    if seconds < before.seconds:
        raise DataError(f"{where}: total_audio_processed is {seconds:g} after {before.seconds:g}; time never goes back")
    kept = len(before.words) - len(gone)  # below 0 no slice is as long as `gone`
    if before.words[kept:] != gone:
        raise DataError(f"{where}: deleted_tokens {gone!r:.60} are not the last ones written")
    return Shown(seconds, number, [*before.words[:kept], *output.generated_tokens], bool(gone))


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


class Said(Struct):
    """A line of SimulStreaming."""

    emission_time: Seconds
    text: str = ""
    status: Literal["COMPLETE", "INCOMPLETE"] | None = None


def _simulstreaming(rows: Rows) -> Iterator[Recording]:
    states: list[Shown] = []
    text, previous = "", 0.0
    for where, number, row in rows:
        if wrong := misspelt(row, ("text", "status")):
            raise DataError(f"{where}: unknown key {wrong}")
        said = converted(where, row, Said)
        if said.emission_time < previous:
            problem = f"emission_time is {said.emission_time:g} after {previous:g}"
            raise DataError(f"{where}: {problem}; time never goes back, one file for each recording")
        previous = said.emission_time
        if said.status != "INCOMPLETE":  # the translation's are whole words, with a blank or without
            text += said.text if said.status is None else f" {said.text}"
            states.append(Shown(said.emission_time, number, text.split()))
    yield Recording(None, 1, words_of(states))


# -------------------------------------------------------------------------------------------- OmniSTEval, SimulEval


class Segment(Struct):
    """A line of OmniSTEval; without words it has no times."""

    index: Whole
    docid: Whole
    segid: Whole
    prediction: str
    emission_cu: list[SinceSegment] = []
    time_to_recording_end: Milliseconds | None = None


def _omnisteval(rows: Rows) -> Iterator[Recording]:
    segments = []
    for position, (where, number, row) in enumerate(rows):
        segment = converted(where, row, Segment)
        if segment.index != position:
            raise DataError(f"{where}: index {segment.index} where {position} is due; each segment once, in order")
        words = _timed(where, number, segment.prediction, segment.emission_cu, "emission_cu")
        if words and segment.time_to_recording_end is None:
            raise DataError(f'{where}: expected a number of milliseconds as "time_to_recording_end"')
        segments.append((segment, where, number, words))
    for due, (document, group) in enumerate(groupby(segments, key=lambda member: member[0].docid)):
        members = list(group)
        if document != due:
            raise DataError(f"{members[0][1]}: docid {document} where {due} is due; each recording once, in order")
        yield Recording(document, members[0][2], tuple(_of_document(members)))


def _of_document(members: Sequence[tuple[Segment, str, int, list[TimedWord]]]) -> list[TimedWord]:
    """The words of a recording's segments by their time, which counts from the first segment's start."""
    words: list[TimedWord] = []
    first = members[0][0].time_to_recording_end
    for segment, where, _, timed in members:
        end = segment.time_to_recording_end
        if timed and (first is None or end is None):
            problem = "the first segment of its recording has no words, and so no start"
            raise DataError(f"{where}: {problem}; give the log that was segmented instead of this one")
        words += (
            word._replace(seconds=max(0.0, round((first - end) / 1000 + word.seconds, 6)))  # type: ignore[operator]
            for word in timed
        )
    return sorted(words, key=lambda word: word.seconds)  # stable: of one moment, in the order of the segments


class Spoken(Struct):
    """A line of SimulEval's log of speech."""

    source: Annotated[list[str], Meta(min_length=1)]  # the recording's file first
    prediction: str
    delays: list[Milliseconds]


def _simuleval(rows: Rows) -> Iterator[Recording]:
    lines: dict[str, int] = {}
    for where, number, row in rows:
        spoken = converted(where, row, Spoken)
        name = stem(spoken.source[0])
        if lines.setdefault(name, number) != number:
            raise DataError(f"{where}: the recording {name!r} appears twice (line {lines[name]})")
        words = _timed(where, number, spoken.prediction, spoken.delays, "delays")
        yield Recording(name, number, tuple(word for word in words if word.token != "</s>"))


def _timed(where: str, number: int, prediction: str, times: Sequence[float], key: str) -> list[TimedWord]:
    """The words of a prediction at their times, given in milliseconds, which never fall."""
    tokens = prediction.split()
    if len(tokens) != len(times):
        raise DataError(f"{where}: {len(tokens)} words but {len(times)} {key}; each word needs one, in milliseconds")
    for i, (previous, following) in enumerate(pairwise(times), 1):
        if following < previous:
            raise DataError(f"{where}: {key}[{i}] is {following:g} after {previous:g}; time never goes back")
    return [TimedWord(time / 1000, token, 0, number) for token, time in zip(tokens, times, strict=True)]


# ----------------------------------------------------------------------------------------------------------- reading


def read(path: Path) -> list[Recording]:
    """The recordings of a log, or of a folder with one of SimulStreaming's for each: NAME.jsonl."""
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise DataError(f"{path}: expected a file NAME.jsonl for each recording, found none")
        return [Recording(file.stem, 1, recording.wrote) for file in files for recording in read(file)]
    rows = ((f"{path}:{number}", number, row) for number, row in numbered_lines(path))
    first = next(rows)
    reader = _reader(first[2])
    if reader is None:
        programs = "SimulEval's (prediction, delays), simulstream's (id, metadata), SimulStreaming's (emission_time)"
        others = "OmniSTEval's (docid, segid, emission_cu) or a table (index token delay)"
        expected = f"not a log of a supported program: expected {programs}, {others}"
        raise DataError(f"{first[0]}: {expected}, got {_keys(first[2])}")
    return list(reader(chain([first], rows)))


def _reader(row: dict[str, Any]) -> Callable[[Rows], Iterator[Recording]] | None:
    """What reads a log with this first line; None for a line of another program."""
    if "model_loading_time" in row or ("id" in row and ("metadata" in row or "total_audio_processed" in row)):
        return _simulstream
    if "emission_time" in row:
        return _simulstreaming
    if "emission_cu" in row or ("docid" in row and "segid" in row):
        return _omnisteval
    return _simuleval if "prediction" in row and isinstance(row.get("source"), list) else None


def stem(file: str) -> str:
    """The name of a recording: its file's, without folder and ending."""
    return PurePosixPath(file.replace("\\", "/")).stem


def _keys(row: dict[str, Any]) -> str:
    return f"the keys {', '.join(row)[:80]}" if row else "an empty object"
