"""Ledgers: the measured rows of an item in a tracked text file that records the origin of every number.

A file begins with `# key: value` lines: item, command, program version, date, a digest of every input (config,
models, data sets), and the signatures, which the rows refer to by number.  `made by` names the commit that has the code
and models of an item whose code has left or whose models were replaced; such a ledger is archived and never stale.  A
header and one tab-separated line per row follow.  A row is identified by its cell (the item's own columns) and its
metric.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqa import results
from sqa.core import BuiltMetric, DataError, Floats, bootstrap, compare, holm
from sqa.files import write_text
from sqa.pipeline.folder import read_row
from sqa.results import Frame, Table
from sqa.results import Row as Row
from sqa.results import row_of as row_of

MEASURED = (*results.MEASURED, "run")  # columns after the item's own; `run` is empty
DIGITS = 12  # digits of a digest in a ledger


@dataclass(frozen=True, kw_only=True)
class Ledger(Frame):
    """All rows of an item and their inputs."""

    item: str
    command: str
    version: str  # version of the program
    date: str  # ISO 8601, date of the newest row
    inputs: Mapping[str, str]  # "model es-en" -> first digits of its digest
    made_by: str = ""  # commit that has the code of an archived item

    @property
    def title(self) -> str:
        """Name of the ledger in error messages."""
        return f"ledger {self.item}"


def read(path: Path) -> Ledger:
    """Return the ledger in a file; raises DataError if it cannot be read."""
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise DataError(f"{path}: cannot be read as a ledger ({error!r}); run `sqa results update`") from error


def _parsed(text: str) -> Ledger:
    lines = text.splitlines()
    head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    header, *body = (line.split("\t") for line in lines if not line.startswith("# "))
    signatures = {"": ""} | _named(head, "signature ")
    rows = (read_row(cells[:-1], nothing="") for cells in body)
    named = tuple(replace(row, signature=signatures[row.signature]) for row in rows)
    about = {key: head[key] for key in ("item", "command", "version", "date")}
    about |= {"made_by": head.get("made by", "")}
    return Ledger(tuple(header[: -len(MEASURED)]), named, **about, inputs=_named(head, "input "))


def _named(head: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the values of the header lines whose key starts with `kind`, by the rest of the key."""
    return {key.removeprefix(kind): value for key, value in head.items() if key.startswith(kind)}


def dump(ledger: Ledger) -> str:
    """Return the text of a ledger, whose head includes a digest of its rows; equal ledgers give equal bytes."""
    signatures = {s: str(i) for i, s in enumerate(dict.fromkeys(r.signature for r in ledger.rows if r.signature), 1)}
    head = {"item": ledger.item, "command": ledger.command, "version": ledger.version, "date": ledger.date}
    head |= {"made by": ledger.made_by} if ledger.made_by else {}
    head |= {f"input {name}": digest for name, digest in sorted(ledger.inputs.items())}
    head |= {f"signature {number}": signature for signature, number in signatures.items()}
    rows = [[*_shown(row), row.unit, signatures.get(row.signature, ""), ""] for row in ledger.rows]
    body = Table((*ledger.columns, *MEASURED), rows).to_tsv()
    head["rows"] = rows_digest(body)
    return "".join(f"# {key}: {value}\n" for key, value in head.items()) + body


def rows_digest(body: str) -> str:
    """Return the first digits of the sha256 of the text below the head."""
    return hashlib.sha256(body.encode()).hexdigest()[:DIGITS]


def edited(path: Path) -> bool:
    """Return whether a ledger's rows have been edited since they were written."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    body = "".join(line for line in lines if not line.startswith("# "))
    return f"# rows: {rows_digest(body)}\n" not in lines


def write(ledger: Ledger, path: Path) -> None:
    """Write a ledger atomically; raises DataError for a duplicate row."""
    if len(ledger.by_key()) != len(ledger.rows):
        keys = [row.key for row in ledger.rows]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DataError(f"ledger {ledger.item}: {' '.join(twice)} was measured twice; its cell needs another column")
    write_text(path, dump(ledger))


def _shown(row: Row) -> list[str]:
    """Return a row's cell, metric, numbers and count as text."""
    return [*row.key, *map(_number, (row.value, row.low, row.high)), str(row.n)]


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:.6f}" if abs(value) < 1e6 else repr(float(value))


def measured(cell: tuple[str, ...], metric: BuiltMetric, a: Floats, b: Floats | None = None) -> Row:
    """Return the row of a metric of statistics (n, d), or of the difference a - b, with its interval."""
    number = bootstrap(a, metric) if b is None else compare(a, b, metric)
    return row_of(cell, metric.name, number, metric.unit, metric.signature())


def after_holm(tests: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each p-value, corrected over all of them."""
    for row, corrected in zip(tests, holm([row.value for row in tests]), strict=True):
        yield Row(row.cell, f"{row.metric} after Holm", corrected, n=row.n, unit="p")


def same_numbers(old: Ledger, new: Iterable[Row]) -> bool:
    """Return whether rows equal those of a ledger, digit for digit."""
    return [(*_shown(row), row.signature) for row in old.rows] == [(*_shown(row), row.signature) for row in new]
