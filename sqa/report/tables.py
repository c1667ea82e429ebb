"""A table of text cells for readers of every kind: aligned, TSV, LaTeX, HTML, JSON values."""

import html
import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

NONE = frozenset({"n/a", "-", ""})  # cells without a value
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side, two blanks apart; columns of numbers to the right.  The first row is the header."""
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    numbers = numeric(rows)
    lines = []
    for row in rows:
        cells = zip(row, widths, numbers, strict=True)
        lines.append("  ".join(_padded(cell, width, right) for cell, width, right in cells).rstrip())
    return "".join(line + "\n" for line in lines)


def latex(rows: Sequence[Sequence[str]]) -> str:
    """A tabular with the rules of the package booktabs.  The first row is the header."""
    columns = "".join("r" if right else "l" for right in numeric(rows))
    head, *body = [" & ".join(map(latex_escaped, row)) + r" \\" for row in rows]
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "".join(line + "\n" for line in lines)


def tsv_text(rows: Sequence[Sequence[str]]) -> str:
    """Tab-separated lines; a tab or a line end in a cell becomes a blank."""
    return "".join("\t".join(" ".join(cell.split("\t")).replace("\n", " ") for cell in row) + "\n" for row in rows)


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """A plain HTML table, as a notebook shows it."""
    head, *body = (
        "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(("th", *["td"] * len(rows)), rows, strict=False)
    )
    return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def as_objects(rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """One object a row, by the names of the header; numbers as such, cells without a value as None."""
    head, *body = rows
    return [dict(zip(head, map(_value, row), strict=True)) for row in body]


def numeric(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Of each column: whether it holds numbers, and cells without a value, below the header."""
    columns = zip(*rows, strict=True)
    kinds = ([_value(cell) for cell in column[1:]] for column in columns)
    return [
        any(isinstance(v, int | float) for v in values) and not any(isinstance(v, str) for v in values)
        for values in kinds
    ]


def _value(cell: str) -> str | int | float | None:
    if cell in NONE:
        return None
    for kind in (int, float):
        try:
            number = kind(cell)
        except ValueError:
            continue
        return number if cell[-1:].isdigit() and "_" not in cell else cell  # no "inf", "nan", "1_000"
    return cell


def latex_escaped(text: str) -> str:
    """The text with LaTeX's special characters escaped."""
    return "".join(_ESCAPED.get(sign, sign) for sign in text)


def _width(text: str) -> int:
    """Columns of a terminal: wide signs take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(bool(unicodedata.combining(sign)) for sign in text)


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def restyled(text: str, style: str) -> str:
    """A command's stdout, its tables in another style.

    JSON is the rows of a single table, or the list of lines without a table, else {"tables": [...], "lines": [...]}.
    """
    blocks = list(_blocks(text.splitlines()))
    if style == "json":
        objects = [as_objects(block) for block in blocks if isinstance(block, list)]
        lines = [block for block in blocks if isinstance(block, str)]
        document: Any = {"tables": objects, "lines": lines}
        if len(objects) == 1 and not lines:
            [document] = objects
        elif not objects:
            document = lines
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    draw = aligned if style == "aligned" else latex
    return "".join(draw(block) if isinstance(block, list) else f"{block}\n" for block in blocks)


def _blocks(lines: Sequence[str]) -> Iterator[list[list[str]] | str]:
    """Tables (consecutive lines with as many tabs) and the lines between them."""
    table: list[list[str]] = []
    for line in lines:
        cells = line.split("\t")
        if table and len(cells) != len(table[0]):
            yield table
            table = []
        if len(cells) > 1:
            table.append(cells)
        else:
            yield line
    if table:
        yield table
