"""Lines of logs: the program that wrote a log, whether it translates text or speech, and the keys of a line.

`sqa run`, `sqa latency` with and without `--facts`, and the scorers inside other programs all use `kind_of` and
`log_line`.  Explicit fields determine the kind, never the spelling of a number or a word:

    simulstream      "model_loading_time", or "id" with "metadata" or "total_audio_processed"    speech, seconds
    SimulStreaming   "emission_time"                                                             speech, seconds
    OmniSTEval       "emission_cu", or "docid" with "segid"                                      speech, milliseconds
    SimulEval        "prediction", "delays" or "source": an audio file as `source` is speech in milliseconds, a text of
                     `source_length` words is text in words; without a `source` the kind is unknown
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from sqa.core import DataError, Whole, misspelt
from sqa.files.records import converted

Program = Literal["SimulEval", "simulstream", "SimulStreaming", "OmniSTEval"]
# token kinds of a log: see `sqa.files.target_words`
Pieces = Literal["words", "sentencepiece", "bytes", "bpe", "wordpiece", "characters"]
KEYS = ("prediction", "delays", "source")  # a line of SimulEval has at least one of these keys
# Within these bounds all sums and quotients are finite.
Delay = Annotated[int, Meta(ge=0, le=1 << 53)] | Annotated[float, Meta(ge=0, le=1e100)]
Length = Annotated[int, Meta(ge=1, le=1 << 53)] | Annotated[float, Meta(ge=1e-100, le=1e100)]
_AUDIO = re.compile(r"\S.*\.(wav|flac|mp3|ogg|oga|opus|m4a|aac|aiff?|wma|webm|mp4|mkv|avi|sph|pcm)", re.IGNORECASE)


class Kind(NamedTuple):
    """The kind of a log."""

    program: Program
    speech: bool | None  # None: no field states it


class LogLine(Struct, kw_only=True):
    """A line of SimulEval's log; delays count source words, or milliseconds of speech."""

    index: Whole | None = None
    prediction: str | None = None
    prediction_length: Whole | None = None
    prediction_spm: list[str] | None = None
    delays: list[Delay] | None = None
    elapsed: list[Delay] | None = None
    source: str | list[str] | None = None
    source_length: Length | None = None
    reference: str | None = None
    reference_length: Length | None = None
    time_to_recording_end: Length | None = None


def log_line(where: str, record: Mapping[str, Any], *needed: str, kind: type[Any] = LogLine) -> Any:
    """Return a record of a log as a line of this kind.

    Raises DataError if one of the keys `needed` is missing, or another key has a wrong type or is misspelt.
    """
    if wrong := misspelt(record, kind.__struct_encode_fields__):
        raise DataError(f"{where}: unknown key {wrong}")
    line = converted(where, record, kind)
    if absent := [key for key in needed if getattr(line, key) is None]:
        raise DataError(f"{where}: no `{absent[0]}`")
    return line


def kind_of(where: str, row: Mapping[str, Any], declared: bool | None = None) -> Kind:
    """Return the kind of a log from one line; `declared` states whether the user declares it as speech.

    Raises DataError if no supported program wrote the line, its translation is speech, or two of its fields disagree.
    """
    program = _program(row)
    if program is None:
        programs = "SimulEval's (prediction, delays), simulstream's (id, metadata), SimulStreaming's (emission_time)"
        others = "or OmniSTEval's (docid, segid, emission_cu)"
        got = f"the keys {', '.join(row)[:80]}" if row else "an empty object"
        raise DataError(f"{where}: not a log of a supported program: expected {programs} {others}, got {got}")
    found, reason = _source(where, row, declared) if program == "SimulEval" else (True, f"a log of {program}")
    if None not in (found, declared) and found != declared:
        raise DataError(f"{where}: {reason}, but --source is {'speech' if declared else 'text'}; omit --source")
    return Kind(program, declared if found is None else found)


def _program(row: Mapping[str, Any]) -> Program | None:
    if "model_loading_time" in row or ("id" in row and ("metadata" in row or "total_audio_processed" in row)):
        return "simulstream"
    if "emission_time" in row:
        return "SimulStreaming"
    if "emission_cu" in row or ("docid" in row and "segid" in row):
        return "OmniSTEval"
    return "SimulEval" if any(key in row for key in KEYS) or misspelt(row, KEYS) else None


def _source(where: str, row: Mapping[str, Any], declared: bool | None) -> tuple[bool | None, str]:
    """Return whether the source of SimulEval's line is speech (None if its fields do not state it), and the reason."""
    if spoken := [key for key in ("durations", "intervals") if row.get(key)]:
        raise DataError(
            f"{where}: has {spoken[0]}, so its translation is speech; only logs with written words are read"
        )
    source, length = row.get("source"), row.get("source_length")
    if names_audio(source):
        return True, "`source` is an audio file"
    if isinstance(source, list):
        raise DataError(f'{where}: `source` is a list without an audio file; expected a text or a list like ["a.wav"]')
    words = len(source.split()) if isinstance(source, str) else 0
    if not words or not isinstance(length, int | float):
        return (False if words else None), f"`source` is a text of {words} words"
    if length == words:
        return False, f"`source` is a text of {words} words, the same number as source_length"
    if not declared:
        hint = "if delays are milliseconds of speech, give the audio file as `source`, or `sqa latency` --source speech"
        raise DataError(f"{where}: `source` has {words} words, but source_length is {length:g}; {hint}")
    return None, ""


def names_audio(source: object) -> bool:
    """Return whether a `source` is an audio file, alone or first in a list."""
    file = source[0] if isinstance(source, list) and source else source
    return isinstance(file, str) and bool(_AUDIO.fullmatch(file.strip()))
