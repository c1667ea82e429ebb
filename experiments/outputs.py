"""Output of an item of `sqa reproduce`: tables (CSV), pictures, pages, differences with intervals, rows in the store.

`beside` adds the paper's finding, our finding, and the reason for the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tqdm import tqdm

from sqa import results
from sqa.core import Comparison, DataError, table_of
from sqa.files import Stage, Store, write_text
from sqa.report import plots
from sqa.report.plots import save, style
from sqa.results import Frame, Row, Table, row_of, show_lines

CLAIM = ("dataset", "translator", "guesser", "claim", "between")  # columns of a table of differences
DIFFERENCES = (*CLAIM, "difference", "low", "high", "questions", "note")


class LeftOut(NamedTuple):
    """A contestant or system without results."""

    label: str
    reason: str


def gap(dataset: str, translator: str, guesser: str, claim: str, comparison: Comparison, form: str = ".3f") -> Row:
    """Return the row of a claim with its paired comparison; the claim holds if the difference is above 0.

    guesser: "-" if the claim is about the text alone.
    """
    between = f"{comparison.a:{form}} and {comparison.b:{form}}"
    return row_of((dataset, translator, guesser, claim, between), "difference", comparison)


class Outputs:
    """Writes the output files of an item to a folder; `paths` lists them in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: list[Path] = []

    def csv(self, name: str, lines: Iterable[Sequence[Any]], show: bool = False) -> None:
        """Write a CSV file whose header is the first of `lines`; print the table if `show` is set."""
        header, *rows = lines
        self._table(name, Table(header, rows), show)

    def rows(self, name: str, frame: Frame, show: bool = False) -> None:
        """Write numbers as CSV, one row each: cell, metric, value, 95% interval, count, unit, signature."""
        self._table(name, replace(frame.table(), nothing=""), show)

    def differences(self, rows: Iterable[Row], left_out: Iterable[LeftOut] = (), show: bool = True) -> None:
        """Write a tab-separated file of claims; each contestant left out has a row with the reason."""
        lines = [(*row.cell, row.value, row.low, row.high, row.n, "") for row in rows]
        lines += [("all", "-", out.label, "-", "-", None, None, None, None, out.reason) for out in left_out]
        self._table("differences.tsv", Table(DIFFERENCES, lines, nothing=""), show)

    def _table(self, name: str, table: Table, show: bool) -> None:
        self.write(name, table.to_tsv() if name.endswith(".tsv") else table.to_csv())
        if show:
            results.show(table)

    def picture(self, stem: str, drawing: Callable[..., plots.Figure], *arguments: Any) -> None:
        """Write the figure that `drawing` returns for the arguments, as PDF and PNG."""
        with style():
            self.paths += save(drawing(*arguments), self.folder, stem)

    def end(self) -> None:
        """Print the names of all files written."""
        show_lines(*self.paths)

    def write(self, name: str, text: str) -> None:
        """Write a text file to the item's folder."""
        write_text(self.folder / name, text)
        self.paths.append(self.folder / name)


def cached_rows(
    store: Store,
    stage: Stage,
    ids: Sequence[str],
    make: Callable[[slice], Iterable[tuple[Any, ...]]],
    title: str,
    **kinds: str,
) -> list[tuple[Any, ...]]:
    """Return a tuple of values for each question, in order, with one value for each column in `kinds`.

    The rows are stored in blocks, so a killed command resumes at the first missing one.

    `make` computes the tuples of a block that is not in the store.  `title` is shown at the progress bar.
    """
    schema = {"question_id": "text", **kinds}
    blocks = -(-len(ids) // stage.block_size)
    if store.missing(stage, blocks):
        with store.working_on(stage):
            for index in tqdm(store.missing(stage, blocks), desc=title, unit="block", mininterval=2):
                block = slice(index * stage.block_size, (index + 1) * stage.block_size)
                rows = ([id, *row] for id, row in zip(ids[block], make(block), strict=True))
                store.write(stage, index, table_of(schema, rows))
    tables = [store.read(stage, index, schema) for index in range(blocks)]
    columns = [[value for table in tables for value in table[name].to_list()] for name in schema]
    if columns[0] != list(ids):
        raise DataError(f"{store.folder(stage)}: its rows do not match the questions; delete it and run again")
    return list(zip(*columns[1:], strict=True))


FILE = Path(__file__).with_name("paper") / "side_by_side.yaml"
KEYS = ("paper", "ours", "why different")


def beside(item: str) -> list[str]:
    """Return the lines for an item ("fig5", "table2"), or no lines if the item is not in the paper."""
    match = re.fullmatch(r"(fig|table)(\d+)", item)
    if match is None:
        return []
    name = re.compile(rf"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}(?!\d)")
    return [f"{row['item']}, {key}: {row[key]}" for row in _rows() if name.match(row["item"]) for key in KEYS]


def side_by_side() -> list[str]:
    """Return the findings of all items as Markdown, a section for each item."""
    rows = [(f"## {row['item']}", *(f"- **{key.capitalize()}:** {row[key]}" for key in KEYS)) for row in _rows()]
    return [line for title, *findings in rows for line in ("", title, "", *findings)]


def _rows() -> list[dict[str, str]]:
    rows: list[dict[str, str]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return rows
