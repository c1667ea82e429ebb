"""Tables in Markdown: one line a row, no padding, so that a changed number changes its own line only.

(tabulate pads its columns, also those of its TSV, and leaves bars in cells as they are, which ends the cell.)
"""

from collections.abc import Iterable, Sequence


def row(cells: Sequence[str]) -> str:
    """One line of a table; the cells are Markdown already, but for bars, which would end them."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def head(cells: Sequence[str]) -> list[str]:
    """The header of a table, and the line below it."""
    return [row(cells), "|---" * len(cells) + "|"]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [*head(header), *map(row, rows)]
