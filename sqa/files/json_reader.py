"""The one reader of JSON that others wrote: limits of depth, numbers and encoding, and errors that name the place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqa.core.errors import DataError

MAX_DEPTH = 100  # lists and objects within one another
GREATEST_WHOLE = (1 << 63) - 1  # what numpy and the columns of a trace can hold
_MANY_DIGITS = re.compile(r"[0-9]{19}")  # no greater whole number is written with fewer
_SHOWN = 40  # characters of a numeral or of a place in a message


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, bytes being UTF-8 with or without a byte order mark.

    ValueError, one line saying what and where: "not JSON: ..." for what the grammar does not know (NaN and numbers
    beyond float64 among it); bytes that are not UTF-8; a key twice in an object; a whole number of more than 64 bits;
    lists and objects more than MAX_DEPTH deep; a text with half a surrogate pair, which nothing can write.
    """
    if isinstance(text, bytes):
        text = _decoded(text)
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
        _check_encodable(value)
    return value


def read_json(path: Path) -> Any:
    """The JSON of a small file: a config, a note, a manifest.  OSError where there is none; DataError as `parse_json`.

    Data come in `sqa.files.records`, whose readers know zstd and lines.
    """
    try:
        return parse_json(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.object[error.start]:#04x} at {error.start})") from None


def _no_number(name: str) -> Any:
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}... ({len(name)} characters)"
    raise ValueError(f"not JSON: {shown} is no number")


def _number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _whole(text: str) -> int:
    if len(text) > len(str(GREATEST_WHOLE)) + 1 or abs(int(text)) > GREATEST_WHOLE:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} digits)"
        raise ValueError(f"the whole number {shown} has more than 64 bits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:_SHOWN]!r} is there twice in one object; which value is meant?")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number, parse_float=_number)
_EXACT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number, parse_float=_number, parse_int=_whole)


def _check_depth(value: Any) -> None:
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"lists and objects lie more than {MAX_DEPTH} deep in one another")
        layer = [child for inner in layer for child in _children(inner) if isinstance(child, (list, dict))]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _check_encodable(value: Any) -> None:
    place = next(_places(value, lambda text: any("\ud800" <= c <= "\udfff" for c in text)), None)
    if place is not None:
        where = f"{place[:_SHOWN]}: " if place else ""
        raise ValueError(f"{where}half a surrogate pair, which is no text")


def _places(value: Any, wrong: Callable[[str], bool], place: str = "") -> Iterator[str]:
    """Where in a value, no deeper than MAX_DEPTH, texts are wrong: "questions[2].source"."""
    if isinstance(value, str):
        if wrong(value):
            yield place
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from _places(child, wrong, f"{place}[{number}]")
    elif isinstance(value, dict):
        for key, child in value.items():
            if wrong(key):
                yield f"{place}.a key".removeprefix(".")
            else:
                yield from _places(child, wrong, f"{place}.{key}".removeprefix("."))
