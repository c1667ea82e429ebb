"""Markdown tables from ledgers: rows picked by cell, columns by metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from experiments.lab.ledger import Ledger, Row
from sqa.report import markdown

Cell = Mapping[str, str | int]


class Column(NamedTuple):
    """A metric as a column."""

    metric: str
    head: str
    digits: int = 3
    interval: bool = True
    sign: bool = False  # with + where it is above 0


def number(row: Row | None, digits: int = 3, interval: bool = True, sign: bool = False) -> str:
    """A value with its interval; n/a where it was not measured."""
    if row is None:
        return "n/a"
    spec = f"{'+' * sign}.{digits}f"
    ends = (
        f" [{row.low:{spec}}, {row.high:{spec}}]" if interval and row.low is not None and row.high is not None else ""
    )
    return f"{row.value:{spec}}{ends}"


def table(
    ledger: Ledger, head: Sequence[str], rows: Iterable[tuple[Sequence[str], Cell]], columns: Sequence[Column]
) -> list[str]:
    """Lines of a table: `rows` are (names, cell), and `head` stands above the names."""
    lines = []
    for names, cell in rows:
        numbers = (number(ledger.one(c.metric, **cell), c.digits, c.interval, c.sign) for c in columns)
        lines.append([*names, *numbers])
    return markdown.table([*head, *(column.head for column in columns)], lines)
