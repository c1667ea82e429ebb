"""Tables of delays as translators: one line per target token.

A table is tab-separated and has a header and one line per token.  The header defines how units are named:
    index     token  delay               the 0-based index of the unit in the data set
    question  sentence  token  delay     the question's id and the 0-based sentence in it (unit: sentence)
    question  token  delay               the question's id (unit: question)
Delays are 0..|x|+1, where |x|+1 means after the end of the source.  A unit without words is one line with empty
token and delay, so that truncated files are detected.  For the same reason, the last line must end with a line break.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from sqa.core.errors import DataError
from sqa.files.records import chunks, lines

Key = tuple[str | int, ...]  # key of a unit
Token = tuple[int, Key, str, int]
Row = tuple[Key, tuple[str, ...], tuple[int, ...], tuple[int, ...]]  # (unit, tokens, delays, lines), as in a `Record`
HEADERS: dict[tuple[str, ...], tuple[str, ...]] = {  # table headers, and the units that each can name
    ("index", "token", "delay"): ("sentence", "question"),
    ("question", "sentence", "token", "delay"): ("sentence",),
    ("question", "token", "delay"): ("question",),
}


def read_table(path: Path, unit: str) -> Iterator[Row]:
    """Yield the units ("sentence" or "question") of a table, in the order of the file."""
    rows = enumerate((tuple(line.split("\t")) for line in lines(path)), 1)
    _, header = next(rows, (1, ()))
    if unit not in HEADERS.get(header, ()):
        headers = " or ".join(" ".join(columns) for columns, of in HEADERS.items() if unit in of)
        got = " ".join(header)[:60]
        raise DataError(f"{path}:1: expected the tab-separated header {headers} (unit: {unit}), got {got!r}")
    last = b""
    for chunk in chunks(path):
        last = chunk[-1:] or last
    if last != b"\n":
        raise DataError(f"{path}: the last line has no line ending; is the file truncated?")
    for key, group in groupby(_tokens(path, rows, header), key=itemgetter(1)):
        numbers, _, tokens, delays = zip(*group, strict=True)
        if tokens == ("",):
            tokens = delays = ()
        elif "" in tokens:
            problem = "an empty token marks a unit without words, but this unit has words"
            raise DataError(f"{path}:{numbers[tokens.index('')]}: {problem}")
        yield key, tokens, delays, (numbers[0], *numbers[: len(tokens)])


def _tokens(path: Path, rows: Iterable[tuple[int, Sequence[str]]], header: Sequence[str]) -> Iterator[Token]:
    """Yield line, unit, token and delay of each row; the token is "" in the single line of a unit without words."""
    for number, row in rows:
        where = f"{path}:{number}"
        if len(row) != len(header):
            raise DataError(f"{where}: expected {len(header)} tab-separated columns, got {len(row)}")
        *named, token, delay = row
        columns = zip(header, named, strict=False)
        key = tuple(value if column == "question" else _count(where, column, value) for column, value in columns)
        silent = token == delay == ""
        if not silent and token.split() != [token]:
            raise DataError(f"{where}: a token is one word without spaces, got {token!r}")
        yield number, key, token, 0 if silent else _count(where, "delay", delay)


def _count(where: str, name: str, text: str) -> int:
    """Return a number of words or units.  Raises DataError unless the text consists of decimal digits."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DataError(f"{where}: {name} must be a whole number >= 0, got {text!r}")
    return int(text)
