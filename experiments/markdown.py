"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def head(cells: Sequence[str]) -> list[str]:
    """The header of a table, and the line below it."""
    return [row(cells), "|---" * len(cells) + "|"]
