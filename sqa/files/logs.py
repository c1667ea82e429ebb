"""The kind of a log: which program wrote it, whether it translates text or speech, and what its tokens are.

`sqa run`, `sqa latency` with and without `--facts`, and the scorers inside other programs all ask `kind_of`.  Explicit
fields decide, never the spelling of a number or of a word:

    simulstream      "model_loading_time", or "id" with "metadata" or "total_audio_processed"    speech, seconds
    SimulStreaming   "emission_time"                                                             speech, seconds
    OmniSTEval       "emission_cu", or "docid" with "segid"                                      speech, milliseconds
    SimulEval        "prediction", "delays" or "source": an audio file as `source` is speech in milliseconds, a text as
                     long as `source_length` is text in words; without a `source` the log does not say

The tokens of a log are words, or pieces of words of a kind that the user, or a field of the log, names:

    sentencepiece    "▁Vien" "na": a blank is ▁; <0xC3> is a byte
    bytes            "ĠVien" "na": letters stand for bytes, as in GPT-2's vocabulary
    bpe              "Vien@@" "na"
    characters       "V" "i" "e" "n" "n" "a" " ": written without blanks between tokens
    words            each token is a word
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, TypeVar

from sqa.core.errors import DataError
from sqa.core.registry import misspelt

T = TypeVar("T")
Program = Literal["SimulEval", "simulstream", "SimulStreaming", "OmniSTEval"]
Pieces = Literal["words", "sentencepiece", "bytes", "bpe", "characters"]
KEYS = ("prediction", "delays", "source")  # a line of SimulEval has one of them
MOST_INITIALS = 0.25  # share of words that may begin with Ġ, which is a letter of Maltese
_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")
_AUDIO = re.compile(r"\S.*\.(wav|flac|mp3|ogg|oga|opus|m4a|aac|aiff?|wma|webm|mp4|mkv|avi|sph|pcm)", re.IGNORECASE)


class Kind(NamedTuple):
    """The kind of a log."""

    program: Program
    speech: bool | None  # None: no field says so


def kind_of(where: str, row: Mapping[str, Any], declared: bool | None = None) -> Kind:
    """Return the kind of a log with this line; `declared`: whether the user calls it speech.

    DataError: Another program wrote the line, its translation is speech, or two of its fields disagree.
    """
    program = _program(row)
    if program is None:
        programs = "SimulEval's (prediction, delays), simulstream's (id, metadata), SimulStreaming's (emission_time)"
        others = "OmniSTEval's (docid, segid, emission_cu) or a table (index token delay)"
        got = f"the keys {', '.join(row)[:80]}" if row else "an empty object"
        raise DataError(f"{where}: not a log of a supported program: expected {programs}, {others}, got {got}")
    found, reason = _source(where, row, declared) if program == "SimulEval" else (True, f"a log of {program}")
    if None not in (found, declared) and found != declared:
        raise DataError(f"{where}: {reason}, but --source is {'speech' if declared else 'text'}; leave --source out")
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
    """Return whether the source of SimulEval's line is speech, and why; None if its fields do not say."""
    if spoken := [key for key in ("durations", "intervals") if row.get(key)]:
        raise DataError(f"{where}: has {spoken[0]}, so its translation is speech; only logs of written words are read")
    source, length = row.get("source"), row.get("source_length")
    if names_audio(source):
        return True, "`source` is an audio file"
    if isinstance(source, list):
        raise DataError(f'{where}: `source` is a list without an audio file; expected a text, or a list as ["a.wav"]')
    words = len(source.split()) if isinstance(source, str) else 0
    if not words or not isinstance(length, int | float):
        return (False if words else None), f"`source` is a text of {words} words"
    if length == words:
        return False, f"`source` is a text of {words} words, as source_length says"
    if not declared:
        hint = "if delays are milliseconds of speech, give the audio file as `source`, or `sqa latency` --source speech"
        raise DataError(f"{where}: `source` has {words} words, but source_length is {length:g}; {hint}")
    return None, ""


def names_audio(source: object) -> bool:
    """Return whether a `source` is an audio file, alone or first in a list."""
    file = source[0] if isinstance(source, list) and source else source
    return isinstance(file, str) and bool(_AUDIO.fullmatch(file.strip()))


def recording_name(source: str | list[str]) -> str:
    """The name of a recording: that of its file, without folder and ending."""
    file = source if isinstance(source, str) else source[0]
    return PurePosixPath(file.replace("\\", "/")).stem


def check_words(where: str, tokens: Iterable[str], pieces: Pieces | None) -> None:
    """Refuse tokens that cannot be of their kind, or that look like pieces if the user does not say which kind."""
    if pieces == "bytes" and (wrong := [token for token in tokens if not set(token) <= _BYTE_OF.keys()]):
        raise DataError(f"{where}: the token {wrong[0][:40]!r} has letters that stand for no byte (`pieces: bytes`)")
    if pieces is not None:
        return
    initials = total = 0
    for token in tokens:
        total += 1
        initials += token.startswith("Ġ")
        kind = "sentencepiece" if "▁" in token else "bpe" if token.endswith("@@") else ""
        if kind:
            raise DataError(_hint(where, token, kind))
    if initials > max(1, MOST_INITIALS * total):
        raise DataError(_hint(where, f"{initials} of {total} tokens begin with Ġ", "bytes"))


def _hint(where: str, token: str, kind: str) -> str:
    shown = token if " " in token else f"the token {token[:40]!r}"
    return f"{where}: {shown}: pieces of words? say `pieces: {kind}`, or `pieces: words` if these are words"


def joiner(pieces: Pieces | None) -> Callable[[Sequence[str]], str]:
    """The text of tokens of a kind."""
    return _JOINERS[pieces or "words"]


def words_at(
    where: str,
    prediction: str,
    times: Sequence[T],
    key: str,
    pieces: Pieces | None,
    spm: Sequence[str] | None = None,
) -> tuple[list[str], list[T]]:
    """The words of a log's prediction, each with the time of its last piece.

    Args:
        where: The place of the line, "FILE:LINE".
        prediction: The line's `prediction`.
        times: A time for each word, or for each piece.
        key: The name of the times in the log.
        pieces: Of which kind the tokens of `prediction` are.
        spm: The line's `prediction_spm`, SentencePiece's pieces of `prediction`, for which the times are.

    Raises:
        DataError: There are more or fewer times than tokens, or the tokens are of another kind.
    """
    tokens = prediction.split() if spm is None else list(spm)
    if len(tokens) != len(times):
        raise DataError(f"{where}: {len(tokens)} words but {len(times)} {key}; each word needs one")
    kind = pieces if spm is None else "sentencepiece"
    check_words(where, tokens, kind)
    words, at = (tokens, list(times)) if kind in (None, "words") else _joined(tokens, times, joiner(kind))
    if spm is not None and words != prediction.split():
        raise DataError(f"{where}: the pieces of prediction_spm are not those of the words of prediction")
    return words, at


def _joined(
    tokens: Sequence[str], times: Sequence[T], join: Callable[[Sequence[str]], str]
) -> tuple[list[str], list[T]]:
    words: list[str] = []
    at: list[T] = []
    for end, time in enumerate(times, 1):
        before, words = words, join(tokens[:end]).split()
        continued = bool(before) and words[len(before) - 1] != before[-1]
        at = at[: len(before) - continued]
        at += [time] * (len(words) - len(at))
    return words, at


def _of_bytes(tokens: Sequence[str]) -> str:
    letters = "".join(tokens)
    return bytes(_BYTE_OF.get(letter, 63) for letter in letters).decode("utf-8", "replace")


def _of_sentencepiece(tokens: Sequence[str]) -> str:
    return _BYTES.sub(_letters, "".join(tokens).replace("▁", " "))


def _letters(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("<0x", "").replace(">", "")).decode("utf-8", "replace")


def _byte_letters() -> dict[str, int]:
    """Map letters to bytes as GPT-2 writes them: visible Latin-1 as it is, other bytes from U+0100 on."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTE_OF = _byte_letters()
_JOINERS: dict[str, Callable[[Sequence[str]], str]] = {
    "words": " ".join,
    "sentencepiece": _of_sentencepiece,
    "bytes": _of_bytes,
    "bpe": lambda tokens: re.sub("@@( |$)", "", " ".join(tokens)),
    "characters": "".join,
}
