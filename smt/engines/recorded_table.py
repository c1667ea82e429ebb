"""A table of words and delays, for `smt.engines.recorded`:

tab-separated, a header, then one line a token; the header says how units are named:
    index     token  delay               index = 0-based number of the unit in the data set
    question  sentence  token  delay     the question's id and the 0-based sentence in it (unit: sentence)
    question  token  delay               the question's id (unit: question)
    Delays 0..|x|+1, |x|+1 = written after the end of the source.  A unit without words is one line with empty token and
    delay, so that a truncated file is noticed; for the same reason its last line must end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sqa.core.errors import DataError
from sqa.files.records import chunks, lines

Key = tuple[str | int, ...]  # what names a unit: (index,), (question id, sentence) or (question id,)
HEADERS: dict[tuple[str, ...], tuple[str, ...]] = {  # of the TSV, and the units they can name
    ("index", "token", "delay"): ("sentence", "question"),
    ("question", "sentence", "token", "delay"): ("sentence",),
    ("question", "token", "delay"): ("question",),
}


class Unit(NamedTuple):
    """The translation of a sentence or a question."""

    key: Key
    tokens: tuple[str, ...]
    delays: tuple[int, ...]
    lines: tuple[int, ...]  # of the unit, then of each token


def units(path: Path, unit: str, named: Callable[[Key], str]) -> Iterator[Unit]:
    """The units of a TSV, in the order of the file; `named` says in words what a key names."""
    rows = enumerate((tuple(line.removesuffix("\r").split("\t")) for line in lines(path)), 1)
    _, header = next(rows, (1, ()))
    if unit not in HEADERS.get(header, ()):
        headers = " or ".join(" ".join(columns) for columns, of in HEADERS.items() if unit in of)
        got = " ".join(header)[:60]
        raise DataError(f"{path}:1: expected the tab-separated header {headers} (unit: {unit}), got {got!r}")
    last = b""
    for chunk in chunks(path):
        last = chunk[-1:] or last
    if last != b"\n":
        raise DataError(f"{path}: the last line has no line end; is the file cut off?")
    for key, group in groupby(_tsv_rows(path, rows, header), key=lambda row: row.key):
        members = list(group)
        silent = [row.line for row in members if row.token == ""]
        if silent and len(members) > 1:
            problem = f"an empty token stands for nothing written, but {named(key)} has words"
            raise DataError(f"{path}:{silent[0]}: {problem}")
        written = [] if silent else members
        at = (members[0].line, *(row.line for row in written))
        yield Unit(key, tuple(r.token for r in written), tuple(r.delay for r in written), at)


class _TsvRow(NamedTuple):
    line: int
    key: Key
    token: str  # "" in the one line of a unit without words
    delay: int


def _tsv_rows(path: Path, rows: Iterable[tuple[int, tuple[str, ...]]], header: tuple[str, ...]) -> Iterator[_TsvRow]:
    for number, row in rows:
        where = f"{path}:{number}"
        if len(row) != len(header):
            raise DataError(f"{where}: expected {len(header)} tab-separated columns, got {len(row)}")
        *named, token, delay = row
        key = tuple(
            value if column == "question" else _count(where, column, value)
            for column, value in zip(header[:-2], named, strict=True)
        )
        silent = token == delay == ""
        if not silent and token.split() != [token]:
            raise DataError(f"{where}: a token is one word without blanks, got {token!r}")
        yield _TsvRow(number, key, token, 0 if silent else _count(where, "delay", delay))


def _count(where: str, name: str, text: str) -> int:
    """A number of words, or of a unit: decimal digits only."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DataError(f"{where}: {name} must be a whole number >= 0, got {text!r}")
    return int(text)
