"""The paper's finding for an item, our finding, and the reason for the difference, printed with every item."""

import re
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("paper") / "beside.yaml"
KEYS = ("paper", "ours", "why different")


def beside(item: str) -> list[str]:
    """Return the lines for an item ("fig5", "table2"), or no lines if the item is not in the paper."""
    match = re.fullmatch(r"(fig|table)(\d+)", item)
    if match is None:
        return []
    name = re.compile(rf"{'Figure' if match[1] == 'fig' else 'Table'} {match[2]}(?!\d)")
    rows = [row for row in yaml.safe_load(FILE.read_text(encoding="utf-8")) if name.match(row["item"])]
    return [f"{row['item']}, {key}: {row[key]}" for row in rows for key in KEYS]
