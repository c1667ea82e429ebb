"""Reader of external JSON, JSON lines, TSV and plain lines, also compressed by zstd or gzip.

The same rules hold for every file.  A byte order mark at its beginning is dropped, and lines end with \\n or \\r\\n.
Blank lines of JSON lines are skipped.  In a record, a number such as 6.0 is the whole number 6.  Depth, size, numbers
and encoding have limits; errors name the file, and the line or key.
"""

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from sqa.core import DataError, answers

T = TypeVar("T")
Packing = tuple[str, Callable[[], Any], type[Exception]]  # name, function that starts a frame, its error class
MAX_LINE = 1 << 28  # bytes
MAX_UNPACKED = 1 << 26  # bytes; larger contents may have at most GREATEST_RATIO times the size of the packed file
GREATEST_RATIO = 200  # natural text compresses to about a tenth
MAX_DEPTH = 100  # nested lists and objects
PACKED = (".zst", ".gz")
GREATEST_WHOLE = (1 << 63) - 1  # range of numpy and of the columns of a trace
_MANY_DIGITS = re.compile(r"[0-9]{19}")  # every larger integer has at least as many digits
_EXACT_FLOATS = 1 << 53  # every whole number up to this limit is a float64
_SHOWN = 40  # characters of a numeral or a key shown in a message
_CHUNK = 1 << 20  # bytes
_PIECE = 1 << 12  # bytes passed to the decompressor at once, so that its output fits into memory


# ------------------------------------------------------------------------------------------------------------- JSON


def parse_json(text: str | bytes, whole: bool = False) -> Any:
    """Return the value of a JSON text; bytes are UTF-8 with or without a byte order mark.

    Args:
        text: The JSON text.
        whole: Convert a number such as 6.0 to an int, since many programs write whole numbers in this form.

    Raises:
        ValueError: If the text is invalid.  The message is one line with the problem and its position: "not JSON: ..."
            for invalid syntax (including NaN and numbers beyond float64), other messages for bytes that are not UTF-8,
            a repeated key, an integer of more than 64 bits, nesting deeper than MAX_DEPTH or an unpaired surrogate.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8 (byte {error.object[error.start]:#04x} at {error.start})") from None
    decoder = _DECODERS[whole, bool(_MANY_DIGITS.search(text))]
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise ValueError(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at {at}") from None
    except RecursionError:
        raise ValueError(f"lists and objects are nested more than {MAX_DEPTH} deep") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    if "\\u" in text:  # only an escape can be an unpaired surrogate
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half a surrogate pair, which is not text") from None
    return value


def _refuse_constant(name: str) -> Any:
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}... ({len(name)} characters)"
    raise ValueError(f"not JSON: {shown} is not a number")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _whole(text: str) -> float | int:
    number = _float(text)
    return int(number) if number.is_integer() and abs(number) <= _EXACT_FLOATS else number


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
        raise ValueError(f"the key {twice[:_SHOWN]!r} occurs twice in one object; keep one of its values")
    return mapping


_HOOKS: dict[str, Any] = {"object_pairs_hook": _object, "parse_constant": _refuse_constant}
_DECODERS = {  # by `whole`, and whether an integer may exceed the limit
    (whole, long): json.JSONDecoder(**_HOOKS, parse_float=parse, parse_int=_integer if long else int)
    for whole, parse in ((False, _float), (True, _whole))
    for long in (False, True)
}


def _check_depth(value: Any) -> None:
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"lists and objects are nested more than {MAX_DEPTH} deep")
        children = (inner.values() if isinstance(inner, dict) else inner for inner in layer)
        layer = [child for inner in children for child in inner if isinstance(child, (list, dict))]


# ------------------------------------------------------------------------------------------------------------ files


def suffix(path: Path) -> str:
    """Return the suffix of a file's name without that of its packing: ".jsonl" for a.jsonl.gz."""
    return (path.with_suffix("") if path.suffix in PACKED else path).suffix


def chunks(path: Path) -> Generator[bytes, None, None]:
    """Yield the file's bytes in pieces, unpacked if its name ends in .zst or .gz; raises DataError if unreadable."""
    if path.suffix in (".zip", ".xz", ".tar", ".tgz", ".7z", ".bz2"):
        raise DataError(f"{path}: packed; unpack it and give the file in it (of packed files, .gz and .zst are read)")
    try:
        with path.open("rb") as file:
            raw = iter(lambda: file.read(_CHUNK), b"")
            yield from _unpacked(path, raw) if path.suffix in PACKED else raw
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _unpacked(path: Path, raw: Iterator[bytes]) -> Iterator[bytes]:
    kind, begin, unsound = _GZIP if path.suffix == ".gz" else _zstd(path)
    frame = None  # the frame being read, None between frames
    packed = unpacked = 0
    try:
        for piece in (chunk[at : at + _PIECE] for chunk in raw for at in range(0, len(chunk), _PIECE)):
            data = piece
            packed += len(data)
            while data:
                frame = frame or begin()
                out = frame.decompress(data)
                unpacked += len(out)
                if unpacked > max(MAX_UNPACKED, GREATEST_RATIO * packed):
                    raise DataError(f"{path}: unpacks to more than {GREATEST_RATIO} times its size; no text does")
                yield out
                data = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    except unsound as error:
        raise DataError(f"{path}: not a valid {kind} file: {error}") from error
    if frame is not None:
        raise DataError(f"{path}: the {kind} stream ends too early; the file is truncated, download it again")


_GZIP: Packing = ("gzip", lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), zlib.error)


def _zstd(path: Path) -> Packing:
    from sqa.core import need

    need("zstandard", str(path))
    import zstandard

    return "zstd", zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError


def lines(path: Path) -> Iterator[str]:
    """Yield the file's lines without their line endings, as `lines_of` does."""
    with closing(chunks(path)) as pieces:  # an error about a line also closes the file
        yield from lines_of(pieces, str(path))


def lines_of(pieces: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of UTF-8 text given in pieces, without line endings or a byte order mark.

    Lines end with \\n or \\r\\n.  Any other \\r raises DataError.  U+0085, U+2028 and U+2029 do not end a line but are
    white space, as in `str.split`.  `name` names the text in messages.
    """
    number = 1
    parts: list[bytes] = []  # parts of the current line
    size = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > MAX_LINE:
            raise DataError(f"{name}:{number}: a line of more than {MAX_LINE >> 20} MiB")
        for start in others:
            yield _decode(name, b"".join(parts), number)
            number, parts, size = number + 1, [start], len(start)
    if size:
        yield _decode(name, b"".join(parts), number)


def _decode(name: str, line: bytes, number: int) -> str:
    try:
        text = line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 (byte {line[error.start]:#04x} at {error.start}); convert it to UTF-8"
        raise DataError(f"{name}:{number}: {problem}") from error
    if "\r" in text:
        problem = f"a carriage return within the line (character {text.index(chr(13))})"
        raise DataError(f"{name}:{number}: {problem}; end lines with \\n or \\r\\n")
    return text.removeprefix("\ufeff") if number == 1 else text


def json_document(path: Path, whole: bool = False) -> Any:
    """Return the JSON document in the file; `whole` as in `parse_json`."""
    try:
        return parse_json(b"".join(chunks(path)), whole)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield one JSON object per line; blank lines are skipped."""
    return (record for _, record in numbered_lines(path))


def numbered_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number (from 1) and the JSON object of each line that is not blank."""
    return numbered(lines(path), str(path))


def numbered(rows: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the JSON object of each line of text; `name` names the text in messages."""
    for number, line in enumerate(rows, 1):
        if not line.strip():
            continue
        try:
            record = parse_json(line, whole=True)
        except ValueError as error:
            expected = "; expected JSON lines, one object per line" if "not JSON" in str(error) else ""
            raise DataError(f"{name}:{number}: {error}{expected}") from error
        if not isinstance(record, dict):
            raise DataError(f"{name}:{number}: expected a JSON object on each line, got {type(record).__name__}")
        yield number, record


def listed(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON list, or of the list under "questions"."""
    document = json_document(path, whole=True)
    listed = document.get("questions") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise DataError(f'{path}: expected a list of questions, or a mapping with a list "questions"')
    for i, record in enumerate(listed):
        if not isinstance(record, dict):
            raise DataError(f"{path}: record {i}: expected an object, got {type(record).__name__}")
    return listed


def table(path: Path, columns: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a tab-separated file without header; raises DataError if a row has more or fewer columns."""
    for number, line in enumerate(lines(path), 1):
        row = tuple(line.split("\t"))
        if len(row) != columns:
            raise DataError(f"{path}:{number}: expected {columns} tab-separated columns, got {len(row)}")
        yield row


def converted(where: str, record: object, kind: type[T], strict: bool = True) -> T:
    """Convert a record to a msgspec type; `where` names it in the DataError.

    With strict=False, numbers and booleans may be given as strings.
    """
    try:
        return convert(record, kind, strict=strict)
    except ValidationError as error:
        raise DataError(f"{where}: {error}") from error


def text_of(where: str, field: str, value: object) -> str:
    """Return `value` if it is a string; otherwise raise DataError, naming the record (`where`) and its `field`."""
    if not isinstance(value, str):
        raise DataError(f"{where}.{field}: expected a text, got {'nothing' if value is None else repr(value)[:60]}")
    return value


def name_of(where: str, field: str, value: object) -> str:
    """Return a record's identifier as a string; raises DataError if it is neither a string nor a whole number."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise DataError(f"{where}.{field}: expected a text or a whole number, got {repr(value)[:60]}")
    text = str(value)
    if wrong := answers.unwritable(text, answers.LINE_ENDS):
        raise DataError(f"{where}.{field}: contains {wrong}; an id must be one line without tabs or control characters")
    return text
