"""What the paper has under an item's number, what stands here, and why the two differ: printed with every item.

The rows are those of docs/paper_items.md, kept in experiments/expected/paper_items.yaml.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from experiments.expected.tables import HERE, Page, render
from sqa.core.errors import DataError
from sqa.run.config import load

TABLE = "paper-items"
HEAD = ("item", "paper", "ours", "why different")


def beside(item: str) -> list[str]:
    """Lines for an item ("fig5", "table2"); none for an item that the paper has not."""
    match = re.fullmatch(r"(fig|table)(\d+)", item)
    if match is None:
        return []
    name = re.compile(rf"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}(?!\d)")
    rows = [row for row in _rows(HERE / "paper_items.yaml") if name.match(row[0])]
    return [line for label, *texts in rows for line in _lines(label, texts)]


def _lines(label: str, texts: list[str]) -> list[str]:
    return [f"{label}, {what}: {text}" for what, text in zip(HEAD[1:], texts, strict=True)]


def published(table: str) -> list[str]:
    """A table of the paper's own numbers, as Markdown lines."""
    return render()[table].splitlines()


@lru_cache(maxsize=1)
def _rows(path: Path) -> tuple[tuple[str, ...], ...]:
    found = load(path, Page).tables.get(TABLE)
    if found is None or found.head != HEAD:
        raise DataError(f"{path} {TABLE}: expected a table with the columns {', '.join(HEAD)}")
    return tuple(tuple(map(str, row)) for row in found.rows if isinstance(row, tuple))
