"""What an item of `sqa reproduce` leaves in its folder: tables (CSV), pictures, pages, differences with intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.lab.ledger import Row, row_of
from sqa.core.differences import Comparison
from sqa.files.atomic import write_text
from sqa.pipeline.saving import tsv
from sqa.report import plots
from sqa.report.plots import save, style

CLAIM = ("dataset", "translator", "guesser", "claim", "between")  # columns of a difference
DIFFERENCES = (*CLAIM, "difference", "low", "high", "questions", "note")


class LeftOut(NamedTuple):
    """One that has no numbers."""

    label: str
    reason: str


def gap(dataset: str, translator: str, guesser: str, claim: str, comparison: Comparison, form: str = ".3f") -> Row:
    """A paired comparison as a claim in words, true where the difference is above 0; guesser "-": of the text alone."""
    between = f"{comparison.a:{form}} and {comparison.b:{form}}"
    return row_of((dataset, translator, guesser, claim, between), "difference", comparison)


class Outputs:
    """The files that an item has written, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: list[Path] = []

    def csv(self, name: str, lines: Iterable[Sequence[str]], show: bool = False) -> None:
        """A comma-separated file, whole or not at all, the header being the first of `lines`."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        self.write(name, text.getvalue(), show)

    def rows(self, name: str, columns: Sequence[str], rows: Iterable[Row], show: bool = False) -> None:
        """Numbers as CSV, a line each: its cell, metric, value, 95% interval, how many, unit, signature."""
        lines = [[*columns, "metric", "value", "low", "high", "n", "unit", "signature"]]
        lines += [[*row.cell, row.metric, *_numbers(row), str(row.n), row.unit, row.signature] for row in rows]
        self.csv(name, lines, show)

    def differences(self, rows: Iterable[Row], left_out: Iterable[LeftOut] = (), show: bool = True) -> None:
        """A tab-separated file of claims; what is left out has a line with the reason."""
        lines = [[*row.cell, *_numbers(row), str(row.n), ""] for row in rows]
        lines += [["all", "-", out.label, "-", "-", "", "", "", "", out.reason] for out in left_out]
        self.write("differences.tsv", tsv(DIFFERENCES, lines), show)

    def picture(self, stem: str, drawing: Callable[..., plots.Figure], *arguments: Any) -> None:
        """PDF and PNG of what a drawing makes of what it is given."""
        with style():
            self.paths += save(drawing(*arguments), self.folder, stem)

    def end(self) -> None:
        """Name all files."""
        for path in self.paths:
            print(path)

    def write(self, name: str, text: str, show: bool = False) -> None:
        """Write a file; print it if it is to be shown."""
        path = self.folder / name
        write_text(path, text)
        self.paths.append(path)
        if show:
            print(text, end="")


def _numbers(row: Row) -> list[str]:
    """Value and interval, empty where there is none."""
    return ["" if x is None else f"{x:.6f}" for x in (row.value, row.low, row.high)]
