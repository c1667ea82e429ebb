"""Results: the row type of every measured number, the frame of such rows, and the table that displays both.

Row      a number with its interval, its unit and its signature, in a cell of named columns
Frame    rows with common columns: selected by value, converted to a table
Table    a header and rows of values, as text, TSV, Markdown, LaTeX, HTML, JSON values or a data frame
show     print a table in the style of the command's options
"""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from sqa.core import DataError

if TYPE_CHECKING:
    import pandas

    from sqa.core import Comparison, Interval

A = TypeVar("A")
B = TypeVar("B")
MEASURED = ("metric", "value", "low", "high", "n", "unit", "signature")  # columns of a row, after those of its cell
DIGITS = 6  # decimal places of a number in a table
NOTHING = "n/a"  # text shown for a missing number
NARROW = 24  # least width in characters to which a column of sentences is wrapped


@dataclass(frozen=True, slots=True)
class Row:
    """A measured number.

    Attributes:
        cell: Values of the frame's columns.
        metric: Name of the metric.
        value: The number; None if the metric has no value.
        low: Lower end of the 95% interval; None if there is no interval.
        high: Upper end of the 95% interval; None if there is no interval.
        n: Number of questions, or of the units that the metric counts.
        unit: Unit of the value: "0-1", "0-100", "words", "per word", "mean score", "questions", ...
        signature: Text that is equal for comparable values; "not computed: ..." without a value.
        columns: Names of the values in `cell`; set by the frame that contains the row.

    Examples:
        >>> Row(("waitk", "9"), "ew", 0.25, low=0.125, high=0.5).key
        ('waitk', '9', 'ew')
    """

    cell: tuple[str, ...]
    metric: str
    value: Any
    low: float | None = None
    high: float | None = None
    n: int = 0
    unit: str = ""
    signature: str = ""
    columns: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __getitem__(self, column: str) -> str:
        """Return the value of a column of the row's frame.

        Args:
            column: Name of the column.

        Returns:
            The value in the row's cell.

        Raises:
            DataError: If the row is not part of a frame with this column.

        Examples:
            >>> Frame(("translator", "k"), [Row(("waitk", "9"), "ew", 0.25)]).rows[0]["k"]
            '9'
        """
        if column not in self.columns:
            raise DataError(f"{self}: no column {column!r}; it has {', '.join(self.columns) or 'no named columns'}")
        return self.cell[self.columns.index(column)]

    @property
    def key(self) -> tuple[str, ...]:
        """Identity of the row in its frame."""
        return (*self.cell, self.metric)

    @property
    def measured(self) -> tuple[Any, ...]:
        """Values of the columns MEASURED."""
        return self.metric, self.value, self.low, self.high, self.n, self.unit, self.signature


def row_of(
    cell: tuple[str, ...], metric: str, measured: Interval | Comparison, unit: str = "", signature: str = ""
) -> Row:
    """Return the row of a value with its interval, or of a difference."""
    return Row(cell, metric, measured.value, defined(measured.low), defined(measured.high), measured.n, unit, signature)


@dataclass(frozen=True)
class Frame:
    """Rows and the columns of their cells.

    Attributes:
        columns: Names of the columns.
        rows: The rows; each `cell` has one value per column, which `row["k"]` returns by name.

    Examples:
        >>> frame = Frame(("translator", "k"), (Row(("waitk", "3"), "ew", 0.5), Row(("waitk", "9"), "ew", 0.25)))
        >>> frame.one("ew", k=9).value
        0.25
    """

    columns: tuple[str, ...]
    rows: Sequence[Row]

    def __post_init__(self) -> None:
        """Name the values of every cell after the columns; raises DataError for a cell of another length."""
        if wrong := next((row for row in self.rows if len(row.cell) != len(self.columns)), None):
            raise DataError(f"{self.title}: {wrong} needs {len(self.columns)} values: {', '.join(self.columns)}")
        named = (row if row.columns == self.columns else replace(row, columns=self.columns) for row in self.rows)
        object.__setattr__(self, "rows", tuple(named))

    def by_key(self) -> dict[tuple[str, ...], Row]:
        """Return the rows by identity.

        Returns:
            (values of the columns, metric) -> row.
        """
        return {row.key: row for row in self.rows}

    def where(self, metric: str | None = None, **cell: str | int) -> list[Row]:
        """Return the rows of a metric whose cell has the given values.

        Args:
            metric: Name of the metric; None: all metrics.
            cell: Column -> value.

        Returns:
            The rows, in order.

        Raises:
            DataError: If the frame has no such column.
        """
        if unknown := [name for name in cell if name not in self.columns]:
            raise DataError(f"{self.title}: no column {unknown[0]!r}; it has {', '.join(self.columns)}")
        rows = [row for row in self.rows if metric in (None, row.metric)]
        return [row for row in rows if all(row[name] == str(value) for name, value in cell.items())]

    def one(self, metric: str, **cell: str | int) -> Row | None:
        """Return the row of a metric and a cell.

        Args:
            metric: Name of the metric.
            cell: Column -> value.

        Returns:
            The row, or None if it was not measured.

        Raises:
            DataError: If there are several rows, or the frame has no such column.
        """
        rows = self.where(metric, **cell)
        if len(rows) > 1:
            raise DataError(f"{self.title}: {metric} of {cell} matches {len(rows)} rows; specify more columns")
        return rows[0] if rows else None

    def values(self, column: str) -> list[str]:
        """Return the values of a column.

        Args:
            column: Name of the column.

        Returns:
            The distinct values, in order of appearance.

        Raises:
            DataError: If the frame has rows but no such column.
        """
        return list(dict.fromkeys(row[column] for row in self.rows))

    def table(self) -> Table:
        """Return the frame as a table.

        Returns:
            A table with one row per result: the columns, then metric, value, low, high, n, unit and signature.
        """
        return Table((*self.columns, *MEASURED), [(*row.cell, *row.measured) for row in self.rows])

    @property
    def title(self) -> str:
        """Name of the frame in error messages."""
        return "results"


# ---------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True, repr=False)
class Table:
    """A header and rows of values: texts, numbers, None, or a `Row` for a number with its interval.

    Args:
        header: Names of the columns.
        rows: Values, one per column.
        digits: Decimal places of the columns that do not have six.
        nothing: Text in place of a missing value.

    Examples:
        >>> print(Table(["k", "ew"], [("3", 0.5), ("9", None)], {"ew": 2}))
        k    ew
        3  0.50
        9   n/a
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    digits: Mapping[str, int] = field(default_factory=dict)
    nothing: str = NOTHING

    @classmethod
    def of(cls, items: Sequence[Any], kind: type) -> Table:
        """Return the table of instances of a dataclass.

        Args:
            items: The instances, one per row.
            kind: The dataclass, whose fields are the columns.

        Returns:
            The table.
        """
        return cls([each.name for each in fields(kind)], [astuple(item) for item in items])

    @property
    def text(self) -> list[list[str]]:
        """The header and the rows as text."""
        digits = [self.digits.get(name, DIGITS) for name in self.header]
        lines = ([shown(cell, n, self.nothing) for cell, n in zip(row, digits, strict=True)] for row in self.rows)
        return [[*self.header], *lines]

    def __repr__(self) -> str:
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_text(self, width: int | None = None) -> str:
        """Return the table as lines of text.

        Args:
            width: Length of a line in characters to which columns of long sentences are wrapped; None: no wrapping.
                Such a column keeps at least 24 characters, and other columns are never wrapped.

        Returns:
            The columns side by side, two spaces apart; columns of numbers are right-aligned.
        """
        return self._tabulated([], self.text, "plain", self._wrapped(width))

    def _tabulated(self, header: Sequence[str], rows: Any, form: str, widths: Any = None) -> str:
        """Return rows of text in a format of tabulate."""
        from tabulate import tabulate  # imported here, since most commands print TSV or JSON

        sides = ["right" if number else "left" for number in self._numeric()] if rows else None
        return f"{tabulate(rows, header, form, disable_numparse=True, colalign=sides, maxcolwidths=widths)}\n"

    def _wrapped(self, limit: int | None) -> list[int | None]:
        """Return the width to which each column of sentences is wrapped, None for other columns."""
        columns = list(zip(*self.text, strict=True))
        widths = [max(map(len, column)) for column in columns]
        sentences = [any(" " in cell for cell in column[1:]) for column in columns]
        long = [width > NARROW and spaced for width, spaced in zip(widths, sentences, strict=True)]
        if limit is None or not any(long):
            return [None] * len(widths)
        others = sum(width for width, is_long in zip(widths, long, strict=True) if not is_long)
        free = limit - len("  ") * (len(widths) - 1) - others
        return [max(NARROW, free // sum(long)) if is_long else None for is_long in long]

    def to_tsv(self) -> str:
        """Return the table as TSV.

        Returns:
            Tab-separated lines; a tab or a line end in a cell becomes a blank.
        """
        return "".join(
            "\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row) + "\n" for row in self.text
        )

    def to_csv(self) -> str:
        """Return the table as CSV.

        Returns:
            Comma-separated lines.
        """
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.text)
        return text.getvalue()

    def to_latex(self) -> str:
        """Return the table for LaTeX.

        Returns:
            A tabular with the rules of booktabs.
        """
        return self._tabulated(self.header, self.text[1:], "latex_booktabs")

    def to_html(self) -> str:
        """Return the table for a page.

        Returns:
            A plain HTML table, as displayed by a notebook.
        """
        return self._tabulated(self.header, self.text[1:], "html")

    def to_objects(self) -> list[dict[str, Any]]:
        """Return the table as plain values.

        Returns:
            One mapping per row, keyed by the header; a missing number is None.
        """
        return [dict(zip(self.header, map(defined, row), strict=True)) for row in self.rows]

    def to_frame(self) -> pandas.DataFrame:
        """Return the table as a data frame.

        Returns:
            A frame with the table's columns.  A `Row` gives three: its value, and its ends as NAME_low and NAME_high.

        Raises:
            ConfigError: If pandas is not installed.
        """
        records = []
        for row in self.rows:
            record: dict[str, Any] = {}
            for name, cell in zip(self.header, row, strict=True):
                ends = {"": cell.value, "_low": cell.low, "_high": cell.high} if isinstance(cell, Row) else {"": cell}
                record |= {f"{name}{end}": value for end, value in ends.items()}
            records.append(record)
        frame = frames().DataFrame(records, columns=None if records else list(self.header))
        missing = [name for name in frame if frame[name].isna().any()]
        numbers = [name for name in missing if all(isinstance(cell, Real) for cell in frame[name].dropna())]
        return frame.astype(dict.fromkeys(numbers, float))

    def _numeric(self) -> list[bool]:
        """Return, for each column, whether it holds only numbers and missing numbers."""
        columns = [[row[i] for row in self.rows if defined(row[i]) is not None] for i in range(len(self.header))]
        return [bool(cells) and all(isinstance(cell, Real) for cell in cells) for cells in columns]


def grouped(pairs: Iterable[tuple[A, B]]) -> dict[A, list[B]]:
    """Return the second members of pairs by the first one, both in order of appearance."""
    groups: dict[A, list[B]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def frames() -> Any:
    """Return the package pandas, which data frames need; raises ConfigError if it is not installed."""
    from sqa.core import need

    need("pandas", "a data frame")
    import pandas

    return pandas


def shown(value: Any, digits: int = DIGITS, nothing: str = NOTHING) -> str:
    """Return a cell as text: a float with `digits` decimal places, `nothing` for None and nan."""
    if isinstance(value, Row):
        return with_interval(value, f".{digits}f")
    if defined(value) is None:
        return nothing
    whole = isinstance(value, Integral) or not isinstance(value, Real)
    return str(value) if whole else f"{value:.{digits}f}"


def with_interval(row: Row, form: str) -> str:
    """Return a row's value as text, with its interval if it has one: "0.304 [0.000, 0.464]"."""
    if row.value is None:
        return NOTHING
    ends = "" if row.low is None or row.high is None else f" [{row.low:{form}}, {row.high:{form}}]"
    return f"{row.value:{form}}{ends}"


def defined(value: Any) -> Any:
    """Return the value, or None in place of nan and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, not padded, so that a changed number changes only its own line."""
    lines = ["| " + " | ".join(map(in_cell, row)) + " |" for row in (header, *rows)]
    return [lines[0], "|---" * len(header) + "|", *lines[1:]]


def in_cell(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    return text.replace("|", "\\|")


# -------------------------------------------------------------------------------------------------------- printing


class Printer:
    """Output of a command on stdout: tables, and lines such as the names of written files."""

    def __init__(self, style: str = "tsv") -> None:
        self.style = style  # "tsv", "aligned", "latex" or "json"
        self.tables: list[list[dict[str, Any]]] = []  # collected until the end, for one JSON document
        self.lines: list[str] = []

    def table(self, table: Table, objects: list[dict[str, Any]] | None) -> None:
        """Print a table, or collect it for the JSON document."""
        if self.style == "json":
            self.tables.append(table.to_objects() if objects is None else objects)
        elif self.style == "aligned":
            print(table.to_text(shutil.get_terminal_size().columns), end="", flush=True)
        else:
            print(table.to_latex() if self.style == "latex" else table.to_tsv(), end="", flush=True)

    def line(self, line: object) -> None:
        """Print a line, or collect it for the JSON document."""
        if self.style == "json":
            self.lines.append(str(line))
        else:
            print(line)

    def end(self) -> None:
        """Print the JSON document: the rows of a single table, the list of lines, or both kinds by name."""
        document: Any = {"tables": self.tables, "lines": self.lines}
        if len(self.tables) == 1 and not self.lines:
            [document] = self.tables
        elif not self.tables:
            document = self.lines
        if self.tables or self.lines:
            print(json.dumps(document, indent=2, ensure_ascii=False))


_PRINTER: ContextVar[Printer | None] = ContextVar("printer", default=None)


@contextmanager
def printing(style: str) -> Iterator[None]:
    """Print the output of `show` and `show_lines` in a style while the context is open."""
    printer = Printer(style)
    token = _PRINTER.set(printer)
    try:
        yield
    finally:  # also output before an error
        _PRINTER.reset(token)
        printer.end()


def show(table: Table, objects: list[dict[str, Any]] | None = None) -> None:
    """Print a table in the style of the running command; objects: its JSON, if different from the table's rows."""
    (_PRINTER.get() or Printer()).table(table, objects)


def show_lines(*lines: object) -> None:
    """Print lines, such as the names of written files, in the style of the running command."""
    for line in lines:
        (_PRINTER.get() or Printer()).line(line)
