"""The one reader of JSON, JSON lines and TSV that others wrote, plain or zstd.

Limits of depth, size, numbers and encoding; errors name the file, and the line or key.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from sqa.core.errors import DataError

T = TypeVar("T")
MAX_LINE = 1 << 28  # bytes
MAX_UNPACKED = 1 << 26  # bytes that a .zst of any size may hold; a greater one at most GREATEST_RATIO times its size
GREATEST_RATIO = 200  # natural text compresses to a tenth
MAX_DEPTH = 100  # nested lists and objects
GREATEST_WHOLE = (1 << 63) - 1  # the range of numpy and of the columns of a trace
_MANY_DIGITS = re.compile(r"[0-9]{19}")  # every greater integer has at least as many
_SHOWN = 40  # characters of a numeral or of a key in a message
_CHUNK = 1 << 20  # bytes
_PIECE = 1 << 12  # bytes given to the decompressor at once: what comes out of them fits into memory


# ------------------------------------------------------------------------------------------------------------- JSON


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, bytes being UTF-8 with or without a byte order mark.

    ValueError, one line saying what and where: "not JSON: ..." for invalid syntax (NaN and numbers beyond float64
    included); bytes that are not UTF-8; a repeated key of an object; an integer of more than 64 bits; lists and objects
    more than MAX_DEPTH deep; a text with half a surrogate pair, which cannot be encoded.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8 (byte {error.object[error.start]:#04x} at {error.start})") from None
    decoder = _EXACT if _MANY_DIGITS.search(text) else _DECODER
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise ValueError(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at {at}") from None
    except RecursionError:
        raise ValueError(f"lists and objects lie more than {MAX_DEPTH} deep in one another") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    if "\\u" in text:  # only an escape can be half a surrogate pair
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half a surrogate pair, which is no text") from None
    return value


def _refuse_constant(name: str) -> Any:
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}... ({len(name)} characters)"
    raise ValueError(f"not JSON: {shown} is no number")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _integer(text: str) -> int:
    if len(text) > len(str(GREATEST_WHOLE)) + 1 or abs(int(text)) > GREATEST_WHOLE:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} digits)"
        raise ValueError(f"the whole number {shown} has more than 64 bits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key in mapping if counts[key] > 1)
        raise ValueError(f"the key {twice[:_SHOWN]!r} is there twice in one object; which value is meant?")
    return mapping


_HOOKS: dict[str, Any] = {"object_pairs_hook": _object, "parse_constant": _refuse_constant, "parse_float": _float}
_DECODER, _EXACT = json.JSONDecoder(**_HOOKS), json.JSONDecoder(**_HOOKS, parse_int=_integer)


def _check_depth(value: Any) -> None:
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"lists and objects lie more than {MAX_DEPTH} deep in one another")
        children = (inner.values() if isinstance(inner, dict) else inner for inner in layer)
        layer = [child for inner in children for child in inner if isinstance(child, (list, dict))]


# ------------------------------------------------------------------------------------------------------------ files


def chunks(path: Path) -> Iterator[bytes]:
    """The file's bytes in pieces, decompressed if its name ends in .zst.  Unreadable or truncated: DataError."""
    try:
        with path.open("rb") as file:
            raw = iter(lambda: file.read(_CHUNK), b"")
            yield from _decompressed(path, raw) if path.suffix == ".zst" else raw
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _decompressed(path: Path, raw: Iterator[bytes]) -> Iterator[bytes]:
    from sqa.core.packages import need

    need("zstandard", str(path))
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = None  # the frame being read, None between frames
    packed = unpacked = 0
    try:
        for piece in (chunk[at : at + _PIECE] for chunk in raw for at in range(0, len(chunk), _PIECE)):
            data = piece
            packed += len(data)
            while data:
                frame = frame or decompressor.decompressobj()
                out = frame.decompress(data)
                unpacked += len(out)
                if unpacked > max(MAX_UNPACKED, GREATEST_RATIO * packed):
                    raise DataError(f"{path}: unpacks to more than {GREATEST_RATIO} times its size; no text does")
                yield out
                data = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise DataError(f"{path}: not a sound zstd file: {error}") from error
    if frame is not None:
        raise DataError(f"{path}: the zstd stream ends too early; the file is truncated, get it again")


def lines(path: Path) -> Iterator[str]:
    """The file's lines without their line ends. Only \\n ends a line (U+2028 and \\r are text); a BOM is dropped."""
    number = 1
    parts: list[bytes] = []  # of the line that is being read
    size = 0
    for chunk in chunks(path):
        first, *others = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > MAX_LINE:
            raise DataError(f"{path}:{number}: a line of more than {MAX_LINE >> 20} MiB")
        for start in others:
            yield _decode(path, b"".join(parts), number)
            number, parts, size = number + 1, [start], len(start)
    if size:
        yield _decode(path, b"".join(parts), number)


def _decode(path: Path, line: bytes, number: int) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"not UTF-8 (byte {line[error.start]:#04x} at {error.start}); convert it to UTF-8"
        raise DataError(f"{path}:{number}: {what}") from error
    return text.removeprefix("\ufeff") if number == 1 else text


def json_document(path: Path) -> Any:
    """The JSON document in the file."""
    try:
        return parse_json(b"".join(chunks(path)))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """One JSON object a line; blank lines are skipped."""
    return (record for _, record in numbered_lines(path))


def numbered_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same with the number of each line, from 1."""
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}:{number}: expected a JSON object, got {type(record).__name__}")
        yield number, record


def listed(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON list, or of the list under "questions"."""
    document = json_document(path)
    listed = document.get("questions") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise DataError(f'{path}: expected a list of questions, or a mapping with a list "questions"')
    for i, record in enumerate(listed):
        if not isinstance(record, dict):
            raise DataError(f"{path}: record {i}: expected an object, got {type(record).__name__}")
    return listed


def table(path: Path, columns: int) -> Iterator[tuple[str, ...]]:
    """The rows of a tab-separated file without header; a row with another number of columns is a DataError."""
    for number, line in enumerate(lines(path), 1):
        row = tuple(line.split("\t"))
        if len(row) != columns:
            raise DataError(f"{path}:{number}: expected {columns} tab-separated columns, got {len(row)}")
        yield row


def converted(where: str, record: object, kind: type[T], strict: bool = True) -> T:
    """A record as a msgspec type; `where` names it in the DataError.  strict=False: numbers and truths may be texts."""
    try:
        return convert(record, kind, strict=strict)
    except ValidationError as error:
        raise DataError(f"{where}: {error}") from error


def text_of(where: str, field: str, value: object) -> str:
    """A text of a record; `where` names the record in the DataError about any other value."""
    if not isinstance(value, str):
        raise DataError(f"{where}.{field}: expected a text, got {'nothing' if value is None else repr(value)[:60]}")
    return value
