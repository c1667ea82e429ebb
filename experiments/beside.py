"""What the paper has under an item's number, what stands here, and why the two differ: printed with every item."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("paper") / "beside.yaml"
HEAD = ("item", "paper", "ours", "why different")


def beside(item: str) -> list[str]:
    """Lines for an item ("fig5", "table2"); none for an item that the paper has not."""
    match = re.fullmatch(r"(fig|table)(\d+)", item)
    if match is None:
        return []
    name = re.compile(rf"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}(?!\d)")
    rows = [row for row in _rows() if name.match(row[0])]
    return [f"{label}, {what}: {text}" for label, *texts in rows for what, text in zip(HEAD[1:], texts, strict=True)]


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[str, ...], ...]:
    read = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return tuple(tuple(row[name] for name in HEAD) for row in read)
