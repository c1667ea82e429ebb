"""Markdown tables from ledgers, with rows selected by cell and columns by metric."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from experiments.results_book.ledger import Ledger, Row
from sqa.results import NOTHING, markdown, with_interval

Cell = Mapping[str, str | int]
Block = Callable[[Ledger], Sequence[str]]  # Markdown lines
FORMS = {"0-100": ".1f", "words": ".1f", "share": ".1%", "count": ",.0f", "per second": ",.0f", "ratio": ".1f"}
DEVIATION = " sd"  # suffix of a metric that is the standard deviation of another one


class Column(NamedTuple):
    """A metric shown as a column."""

    metric: str  # "{metric}" in it stands for the metric of the table's row
    head: str
    digits: int | None = None  # None: the usual digits of its unit
    interval: bool = True
    sign: bool = False  # whether to print + before a positive value
    cell: Cell = MappingProxyType({})  # values that this column's rows have in addition to the table row's cell
    text: Callable[[Ledger, Cell], str] | None = None  # returns the text of a row's cell in place of the number


def columns(*specs: str, **options: Any) -> list[Column]:
    """Return columns from specs "metric" or "metric: head"; `options` apply to all of them."""
    parts = (spec.partition(": ") for spec in specs)
    return [Column(metric, head or metric, **options) for metric, _, head in parts]


def number(row: Row | None, digits: int | None = None, interval: bool = True, sign: bool = False) -> str:
    """Return a value with its interval, or n/a if it was not measured."""
    if row is None:
        return NOTHING
    spec = f"{'+' * sign}{FORMS.get(row.unit, '.3f') if digits is None else f'.{digits}f'}"
    return with_interval(row, spec) if interval else f"{row.value:{spec}}"


def table(
    ledger: Ledger, head: Sequence[str], rows: Iterable[tuple[Sequence[str], Cell]], columns: Sequence[Column]
) -> list[str]:
    """Return the lines of a Markdown table.

    `rows` are pairs (names, cell); a cell may also name a metric.  `head` has the headings of the names.
    """
    lines = [[*names, *(_shown(ledger, c, {**cell, **c.cell}) for c in columns)] for names, cell in rows]
    return markdown([*head, *(column.head for column in columns)], lines)


def _shown(ledger: Ledger, column: Column, cell: Cell) -> str:
    if column.text:
        return column.text(ledger, cell)
    row, spread = (found(ledger, column.metric + end, cell) for end in ("", DEVIATION))
    text = number(row, column.digits, column.interval, column.sign)
    return f"{text} ± {number(spread, column.digits)}" if spread else text


def found(ledger: Ledger, metric: str, cell: Cell) -> Row | None:
    """Return the row of a metric; "{metric}" in its name stands for the metric of the cell."""
    values = {column: value for column, value in cell.items() if column != "metric"}
    return ledger.one(metric.format(**cell), **values)


def pivot(
    names: Sequence[str], columns: Sequence[Column], heads: Sequence[str] = (), **only: str | Sequence[str]
) -> Block:
    """Return a page block: a table with a row for each combination of values of the columns `names` with a number.

    Rows are in order of appearance.  `only` maps a column that is not in `names`, or "metric", to its value, or a
    column in `names` to the list of values to show.
    """
    fixed = {name: value for name, value in only.items() if isinstance(value, str)}
    shown = {name: value for name, value in only.items() if not isinstance(value, str)}

    def block(ledger: Ledger) -> list[str]:
        combinations = dict.fromkeys(tuple(row[name] for name in names) for row in ledger.where(**fixed))
        rows = [(cells, dict(zip(names, cells, strict=True))) for cells in combinations]
        rows = [(cells, {**fixed, **cell}) for cells, cell in rows if all(cell[n] in v for n, v in shown.items())]
        rows = [
            (cells, cell) for cells, cell in rows if any(found(ledger, c.metric, {**cell, **c.cell}) for c in columns)
        ]
        return table(ledger, heads or names, rows, columns)

    return block


def from_mapping(spec: Mapping[str, Any]) -> Block:
    """Return the block of an archived item: a `pivot`, or the listed rows."""
    shown = [Column(**column) for column in spec["columns"]]
    if "rows" not in spec:
        return pivot(spec["names"], shown, spec.get("heads", ()), **spec.get("only", {}))
    rows = [(row["names"], row["cell"]) for row in spec["rows"]]
    return lambda ledger: table(ledger, spec["heads"], rows, shown)


def across(metric: str, column: str, values: Iterable[str | int], head: str = "{}", **cell: str) -> list[Column]:
    """Return table columns that show a metric at each of the given values of a ledger column."""
    return [Column(metric, head.format(value), cell={column: value, **cell}) for value in values]
