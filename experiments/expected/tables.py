"""Tables of the documentation, from the YAML files beside this module.

A page shows a table between two comments, `<!-- expected: NAME -->` and `<!-- end -->`.  A file here holds the tables
of a page: their numbers with what printed them, or which rows of ablation.yaml they show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Literal

from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.core.registry import did_you_mean
from sqa.report.markdown import head, row
from sqa.run.config import load

HERE = Path(__file__).parent
ABLATION = "ablation.yaml"
PAGES = ("README.md", "docs/*.md", "data/models/*/README.md")
REGION = re.compile(r"^<!-- expected: (\S+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
HOW = "python -m experiments.expected render"

Numbers = tuple[float, ...]  # a value; or value and deviation; or value, low and high end of its 95% interval


@dataclass(frozen=True, slots=True)
class Said:
    """A cell of several numbers in a text."""

    text: str  # with a {} (or {:.1f}, ...) for each of the numbers
    numbers: tuple[int | float | Numbers, ...]


Cell = int | float | str | Numbers | Said | None


@dataclass(frozen=True, slots=True)
class Line:
    """A row in another format than its table."""

    cells: tuple[Cell, ...]
    format: str
    point: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers as they were printed by a command."""

    command: str  # that prints them
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...] | Line, ...]
    format: str = ".3f"  # of its numbers that are no whole ones, as Python formats them
    formats: tuple[str | None, ...] = ()  # of each column, where they differ; null = `format`
    point: bool = False  # .5 for 0.5
    layout: Literal["markdown", "text"] = "markdown"  # text: columns of an indented block

    def __post_init__(self) -> None:
        wrong = []
        for i, line in enumerate(self.rows):
            cells = line.cells if isinstance(line, Line) else line
            if len(cells) != len(self.head):
                wrong.append(f"rows[{i}]: expected {len(self.head)} cells as in `head`, got {len(cells)}")
        if self.formats and len(self.formats) != len(self.head):
            wrong.append(f"formats: expected {len(self.head)} as in `head`, got {len(self.formats)}")
        if wrong:
            raise ConfigError(wrong)


@dataclass(frozen=True, slots=True)
class Of:
    """One row of the ablation under a name of its own."""

    label: str
    row: tuple[str, str, int | str, str]  # data set, translator, k, guesser


@dataclass(frozen=True, slots=True)
class Ladder:
    """A translator at every k that was measured."""

    dataset: str
    translator: str
    guesser: str


@dataclass(frozen=True, slots=True)
class Column:
    """A metric of the ablation."""

    metric: str
    head: str
    digits: int = 3
    interval: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of ablation.yaml."""

    head: tuple[str, ...]  # above the names of the rows: one cell, or translator, k (and guesser)
    columns: tuple[Column, ...]
    rows: tuple[Of, ...] = ()
    ladders: tuple[Ladder, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """Claims of ablation.yaml."""

    claims: tuple[str, ...] = ()  # data sets shown; none given: all


@dataclass(frozen=True, slots=True)
class Page:
    """A file of tables by name."""

    tables: dict[str, Table] = field(default_factory=dict)
    measured: dict[str, Measured] = field(default_factory=dict)
    judged: dict[str, Judged] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One run of the ablation."""

    dataset: str
    translator: str
    k: int | str
    guesser: str
    questions: int
    values: dict[str, Numbers]  # metric -> value, low, high

    @property
    def key(self) -> tuple[str, str, int | str, str]:
        return self.dataset, self.translator, self.k, self.guesser


@dataclass(frozen=True, slots=True)
class Ablation:
    """What `sqa ablation` measured; `python -m experiments.expected collect` writes it."""

    command: str
    claims: tuple[tuple[str, ...], ...]  # the lines of its verdicts.tsv below `claims_head`
    claims_head: tuple[str, ...]
    rows: tuple[MeasuredRow, ...]


def render(folder: Path = HERE) -> dict[str, str]:
    """Name -> the table's text, of every table.  A name that is there twice, or a row that is not: ConfigError."""
    ablation = load(folder / ABLATION, Ablation)
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        if path.name == ABLATION:
            continue
        page = load(path, Page)
        made = {name: _given(table) for name, table in page.tables.items()}
        made |= {name: list(_measured(path, name, table, ablation)) for name, table in page.measured.items()}
        made |= {name: list(_judged(table, ablation)) for name, table in page.judged.items()}
        if twice := [name for name in made if name in found]:
            raise ConfigError(f"{path} {twice[0]}: another file has a table of that name; rename one")
        found |= {name: "\n".join(lines) + "\n" for name, lines in made.items()}
    return found


def pages(root: Path = ROOT) -> list[Path]:
    """Every page that may show tables."""
    return [path for pattern in PAGES for path in sorted(root.glob(pattern))]


def filled(path: Path, tables: Mapping[str, str]) -> str:
    """A page's text with its regions as they should be.  A region of no table: DataError."""

    def region(match: re.Match[str]) -> str:
        name = match[1]
        if name not in tables:
            near = did_you_mean(name, tables)
            raise DataError(f"{path}: no table is called {name!r}{near}; the tables are in {HERE.relative_to(ROOT)}")
        return f"<!-- expected: {name} -->\n{tables[name]}<!-- end -->"

    return REGION.sub(region, path.read_text(encoding="utf-8"))


def differing(path: Path, tables: Mapping[str, str]) -> list[str]:
    """The tables of a page that differ from their YAML file."""
    text = path.read_text(encoding="utf-8")
    shown, right = REGION.findall(text), REGION.findall(filled(path, tables))
    return [name for (name, is_there), (_, expected) in zip(shown, right, strict=True) if is_there != expected]


# ------------------------------------------------------------------------------------------------------ one table


def _given(table: Table) -> list[str]:
    lines = [list(table.head)]
    for line in table.rows:
        alone = isinstance(line, Line)
        cells, own, point = (line.cells, line.format, line.point or table.point) if alone else (line, None, table.point)
        columns = table.formats or (None,) * len(cells)
        formats = [own or column or table.format for column in columns]
        lines.append([_cell(cell, spec, point) for cell, spec in zip(cells, formats, strict=True)])
    if table.layout == "markdown":
        return [_tight(text) for text in (*head(lines[0]), *map(row, lines[1:]))]
    widths = [max(len(line[i]) for line in lines) + 2 for i in range(len(table.head))]
    text = ["".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return ["", *(f"    {line.rstrip()}" for line in text), ""]


def _tight(text: str) -> str:
    """A row with one blank in its empty cells."""
    return re.sub(r"(?<=\|)  (?=\|)", " ", text)


def _cell(cell: Cell, spec: str, point: bool) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Said):
        parts = re.split(r"\{:?([^}]*)\}", cell.text)
        if len(parts) // 2 != len(cell.numbers):
            raise ConfigError(f"{cell.text!r}: has {len(parts) // 2} places for {len(cell.numbers)} numbers")
        shown = [_numbers(n, own or spec, point) for n, own in zip(cell.numbers, parts[1::2], strict=True)]
        return "".join(a + b for a, b in zip(parts[::2], [*shown, ""], strict=True))
    return cell if isinstance(cell, str) else _numbers(cell, spec, point)


def _numbers(value: float | Numbers, spec: str, point: bool) -> str:
    """A value, value ± deviation, or value [low, high]."""
    if not isinstance(value, tuple):
        return _number(value, spec, point)
    if len(value) == 2:
        return f"{_number(value[0], spec, point)} ± {_number(value[1], spec.replace('+', ''), point)}"
    if len(value) == 3:
        middle, low, high = (_number(x, spec, point) for x in value)
        return f"{middle} [{low}, {high}]"
    raise ConfigError(f"{value}: expected a value, value and deviation, or value, low and high")


def _number(value: float, spec: str, point: bool) -> str:
    text = str(value) if isinstance(value, int) and "," not in spec else format(value, spec)
    return re.sub(r"^([+-]?)0\.", r"\1.", text) if point else text


def _measured(path: Path, name: str, table: Measured, ablation: Ablation) -> Iterator[str]:
    yield from head([*table.head, *(column.head for column in table.columns)])
    by_key = {line.key: line for line in ablation.rows}
    for of in table.rows:
        if of.row not in by_key:
            raise ConfigError(f"{path} {name}: {ABLATION} has no row {', '.join(map(str, of.row))}; collect it")
        yield row([of.label, *_values(by_key[of.row], table.columns)])
    for ladder in table.ladders:
        wanted = (ladder.dataset, ladder.translator, ladder.guesser)
        mine = [line for line in ablation.rows if (line.dataset, line.translator, line.guesser) == wanted]
        if not mine:
            raise ConfigError(f"{path} {name}: {ABLATION} has no rows {', '.join(wanted)}; collect them")
        for line in sorted(mine, key=lambda line: line.k if isinstance(line.k, int) else inf):
            named = [line.translator, str(line.k), line.guesser][: len(table.head)]
            yield row([*named, *_values(line, table.columns)])


def _values(line: MeasuredRow, columns: Sequence[Column]) -> list[str]:
    cells = []
    for column in columns:
        numbers = line.values.get(column.metric)
        shown = numbers if numbers is None or column.interval else numbers[:1]
        spec = f".{column.digits}f"
        cells.append("" if shown is None else _numbers(shown if len(shown) > 1 else shown[0], spec, point=False))
    return cells


def _judged(table: Judged, ablation: Ablation) -> Iterator[str]:
    yield from head(ablation.claims_head)
    yield from (row(line) for line in ablation.claims if not table.claims or line[0] in table.claims)
