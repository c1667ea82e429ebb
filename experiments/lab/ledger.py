"""Ledgers: the measured rows of an item, a tracked text file that says where every number comes from.

A file begins with `# key: value` lines: the item, the command that makes it, the program's version, the date, a digest
of every input (config, models, data sets) and the signatures that the rows refer to by number.  A header and a
tab-separated line for each row follow.  A row's identity is its cell (the item's own columns) and its metric.
"""

import csv
import hashlib
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqa.core.differences import Band, Comparison
from sqa.core.errors import DataError
from sqa.core.significance import Interval
from sqa.files.atomic import write_text

MEASURED = ("metric", "value", "low", "high", "n", "unit", "signature", "run")  # after the item's own; run: empty
DIGITS = 12  # of a digest in a ledger


@dataclass(frozen=True, slots=True)
class Row:
    """One number."""

    cell: tuple[str, ...]  # values of the item's own columns
    metric: str
    value: float
    low: float | None = None  # 95% interval; None where there is none
    high: float | None = None
    n: int = 0  # questions (or what the item counts)
    unit: str = ""
    signature: str = ""  # what makes two values comparable

    @property
    def key(self) -> tuple[str, ...]:
        """Identity of the row in its ledger."""
        return (*self.cell, self.metric)

    @property
    def arms(self) -> tuple[float, float]:
        """How far its interval reaches below and above the value, 0 where the value is outside.  None: DataError."""
        if self.low is None or self.high is None:
            raise DataError(f"{' '.join(self.key)}: has no interval")
        return max(0.0, self.value - self.low), max(0.0, self.high - self.value)


def row_of(
    cell: tuple[str, ...], metric: str, measured: Interval | Comparison, unit: str = "", signature: str = ""
) -> Row:
    """The row of a value with its interval, or of a difference."""
    value = measured.diff if isinstance(measured, Comparison) else measured.value
    return Row(cell, metric, value, measured.low, measured.high, measured.n, unit, signature)


def of_band(
    cells: Iterable[tuple[str, ...]], metric: str, band: Band, unit: str = "", signature: str = ""
) -> list[Row]:
    """A row for each point of a band."""
    points = zip(cells, band.value.tolist(), band.low.tolist(), band.high.tolist(), strict=True)
    return [Row(cell, metric, value, low, high, band.n, unit, signature) for cell, value, low, high in points]


@dataclass(frozen=True, slots=True)
class Ledger:
    """All rows of an item and what they were made from."""

    item: str
    command: str
    version: str  # of the program
    date: str  # ISO 8601, of the newest row
    inputs: Mapping[str, str]  # "model es-en" -> first digits of its digest
    columns: tuple[str, ...]  # the item's own
    rows: tuple[Row, ...] = field(default=())

    def by_key(self) -> dict[tuple[str, ...], Row]:
        """Rows by identity."""
        return {row.key: row for row in self.rows}

    def where(self, metric: str | None = None, **cell: str | int) -> list[Row]:
        """The rows of a metric (None: all) whose cell has these values.  An unknown column: DataError."""
        if unknown := [name for name in cell if name not in self.columns]:
            raise DataError(f"ledger {self.item}: no column {unknown[0]!r}; it has {', '.join(self.columns)}")
        by_index = {self.columns.index(name): str(value) for name, value in cell.items()}
        rows = [row for row in self.rows if metric in (None, row.metric)]
        return [row for row in rows if all(row.cell[i] == value for i, value in by_index.items())]

    def one(self, metric: str, **cell: str | int) -> Row | None:
        """The row of a metric and a cell; None where it was not measured.  Several: DataError."""
        rows = self.where(metric, **cell)
        if len(rows) > 1:
            raise DataError(f"ledger {self.item}: {metric} of {cell} names {len(rows)} rows; name more columns")
        return rows[0] if rows else None

    def values(self, column: str) -> list[str]:
        """The values of one of the item's columns, in order of appearance."""
        index = self.columns.index(column)
        return list(dict.fromkeys(row.cell[index] for row in self.rows))


def read(path: Path) -> Ledger:
    """The ledger in a file; DataError where it cannot be read."""
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise DataError(f"{path}: cannot be read as a ledger ({error!r}); run `sqa results update`") from error


def _parsed(text: str) -> Ledger:
    lines = text.splitlines()
    head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    table, *body = csv.reader((line for line in lines if not line.startswith("# ")), delimiter="\t")
    size = len(table) - len(MEASURED)
    signatures = {"": ""} | _named(head, "signature ")
    rows = []
    for cells in body:
        metric, value, *ends, n, unit, signature, _ = cells[size:]
        low, high = (float(end) if end else None for end in ends)
        rows.append(Row(tuple(cells[:size]), metric, float(value), low, high, int(n), unit, signatures[signature]))
    about = (head["item"], head["command"], head["version"], head["date"])
    return Ledger(*about, _named(head, "input "), tuple(table[:size]), tuple(rows))


def _named(head: Mapping[str, str], kind: str) -> dict[str, str]:
    """The lines of the head that begin with a word, by what follows it."""
    return {key.removeprefix(kind): value for key, value in head.items() if key.startswith(kind)}


def dump(ledger: Ledger) -> str:
    """The text of a ledger; the same ledger gives the same bytes, and its head says the digest of its rows."""
    signatures = {s: str(i) for i, s in enumerate(dict.fromkeys(r.signature for r in ledger.rows if r.signature), 1)}
    head = {"item": ledger.item, "command": ledger.command, "version": ledger.version, "date": ledger.date}
    head |= {f"input {name}": digest for name, digest in sorted(ledger.inputs.items())}
    head |= {f"signature {number}": signature for signature, number in signatures.items()}
    body = io.StringIO()
    table = csv.writer(body, delimiter="\t", lineterminator="\n")
    table.writerow([*ledger.columns, *MEASURED])
    table.writerows([*_shown(r), r.unit, signatures.get(r.signature, ""), ""] for r in ledger.rows)
    head["rows"] = rows_digest(body.getvalue())
    return "".join(f"# {key}: {value}\n" for key, value in head.items()) + body.getvalue()


def rows_digest(body: str) -> str:
    """First digits of the sha256 of all below the head."""
    return hashlib.sha256(body.encode()).hexdigest()[:DIGITS]


def edited(path: Path) -> bool:
    """Whether a ledger's rows are no longer those that were written."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    body = "".join(line for line in lines if not line.startswith("# "))
    return f"# rows: {rows_digest(body)}\n" not in lines


def write(ledger: Ledger, path: Path) -> None:
    """Write a ledger, whole or not at all.  A duplicate row: DataError."""
    if len(ledger.by_key()) != len(ledger.rows):
        keys = [row.key for row in ledger.rows]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DataError(f"ledger {ledger.item}: {' '.join(twice)} was measured twice; its cell needs another column")
    write_text(path, dump(ledger))


def _shown(row: Row) -> list[str]:
    """A row's cell, metric, numbers and count."""
    return [*row.key, *map(_number, (row.value, row.low, row.high)), str(row.n)]


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:.6f}" if abs(value) < 1e6 else repr(float(value))


def same_numbers(old: Ledger, new: Iterable[Row]) -> bool:
    """Whether rows are those of a ledger, digit for digit."""
    return [(*_shown(row), row.signature) for row in old.rows] == [(*_shown(row), row.signature) for row in new]
