"""What the paper has under an item's number, what stands here, and why the two differ: printed with every item."""

import re
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("paper") / "beside.yaml"
KEYS = ("paper", "ours", "why different")


def beside(item: str) -> list[str]:
    """Lines for an item ("fig5", "table2"); none for an item that the paper has not."""
    match = re.fullmatch(r"(fig|table)(\d+)", item)
    if match is None:
        return []
    name = re.compile(rf"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}(?!\d)")
    rows = [row for row in yaml.safe_load(FILE.read_text(encoding="utf-8")) if name.match(row["item"])]
    return [f"{row['item']}, {key}: {row[key]}" for row in rows for key in KEYS]
