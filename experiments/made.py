"""What an item of `sqa reproduce` leaves in its folder: tables (CSV), pictures, pages, differences with intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from experiments.lab.ledger import Row
from sqa.core.significance import Comparison
from sqa.files.store import write_text
from sqa.run.folder import tsv

DIFFERENCES = ("dataset", "translator", "guesser", "claim", "between", "difference", "low", "high", "questions", "note")


class LeftOut(NamedTuple):
    """One that has no numbers."""

    label: str
    reason: str


class Difference(NamedTuple):
    """How far one value is above another: a claim as a number.  Where it cannot be had, `note` says why."""

    dataset: str
    translator: str
    guesser: str  # "-" where it is about the translation alone
    claim: str  # in words, true where the difference is above 0
    between: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str = ""

    def cells(self) -> list[str]:
        """The cells of a TSV line; an empty one does not apply."""
        return [*self[:5], *map(_six, (self.value, self.low, self.high)), str(self.n) if self.n else "", self.note]


def gap(dataset: str, translator: str, guesser: str, claim: str, found: Comparison, form: str = ".3f") -> Difference:
    """The difference of a paired comparison."""
    between = f"{found.a:{form}} and {found.b:{form}}"
    return Difference(dataset, translator, guesser, claim, between, found.diff, found.low, found.high, found.n)


def of_row(row: Row, guesser: str | None = None) -> Difference:
    """The difference in a row of `experiments.ladders.differences`."""
    dataset, translator, contestant, claim, between = row.cell
    return Difference(dataset, translator, guesser or contestant, claim, between, row.value, row.low, row.high, row.n)


def _six(x: float | None) -> str:
    return "" if x is None else f"{x:.6f}"


class Made:
    """The files that an item has written, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: list[Path] = []

    def table(self, name: str, head: Sequence[str], lines: Iterable[Sequence[str]], show: bool = False) -> None:
        """A tab-separated file."""
        self._write(name, tsv(head, lines), show)

    def csv(self, name: str, lines: Iterable[Sequence[str]], show: bool = False) -> None:
        """A comma-separated file, whole or not at all, the header being the first of `lines`."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        self._write(name, text.getvalue(), show)

    def rows(self, name: str, columns: Sequence[str], rows: Iterable[Row], show: bool = False) -> None:
        """Numbers as CSV, a line each: its cell, metric, value, 95% interval, how many, unit, signature."""
        lines = [[*columns, "metric", "value", "low", "high", "n", "unit", "signature"]]
        for row in rows:
            numbers = map(_six, (row.value, row.low, row.high))
            lines.append([*row.cell, row.metric, *numbers, str(row.n), row.unit, row.signature])
        self.csv(name, lines, show)

    def page(self, name: str, lines: Iterable[str]) -> None:
        """A Markdown page."""
        self._write(name, "\n".join(lines).rstrip() + "\n")

    def differences(
        self, found: Iterable[Difference], left_out: Iterable[LeftOut] = (), name: str = "differences.tsv",
        show: bool = True,
    ) -> None:  # fmt: skip
        """A tab-separated file; one that is left out has a line with the reason."""
        gone = [Difference("all", "-", out.label, "-", "-", note=out.reason) for out in left_out]
        self.table(name, DIFFERENCES, [one.cells() for one in (*found, *gone)], show)

    def add(self, paths: Iterable[Path]) -> None:
        """Files that are written already."""
        self.paths += paths

    def end(self) -> None:
        """Name all files."""
        for path in self.paths:
            print(path)

    def _write(self, name: str, text: str, show: bool = False) -> None:
        """Write a file; print it if it is to be shown."""
        path = self.folder / name
        write_text(path, text)
        self.paths.append(path)
        if show:
            print(text, end="")
