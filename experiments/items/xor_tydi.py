"""Table 4: Finnish and Russian questions through English, ours and the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.lab.item import Item, elsewhere
from experiments.lab.ledger import Row
from experiments.lab.tables import Column, columns, pivot
from experiments.paper import table4
from experiments.paper.table4 import COLUMNS, Table4Config, rows_of
from sqa.files.store import Store
from sqa.run.config import load

SETS = ("dev-engspan", "train-engspan")
HEADS = {"em": "EM", "f1": "F1", "f1.spans": "F1 spans", "em.yes_no": "EM yes/no", "found": "found"}


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Every system and reader on every set and language, and the differences of every two systems."""
    config = load(config_path, Table4Config)
    return rows_of(table4.measure(config, Store(runs))[0], config)


def _of(reader: str, name: str, *metrics: str, head: str = "") -> list[Column]:
    heads = (f"{metric}: {head or name}: {HEADS[metric]}" for metric in metrics)
    return columns(*heads, cell={"set": name, "reader": reader})


ITEMS = (
    Item(
        "xor-tydi",
        "Table 4: answering Finnish and Russian questions through English",
        "table4.yaml",
        COLUMNS,
        measure,
        blocks={
            "typed": pivot(
                ("system",),
                [column for name in SETS for column in _of("typed", name, "f1", "f1.spans", "found")],
                language="mean",
            ),
        },
        kept="ten minutes of a language model",
    ),
    Item(
        "xor-tydi-paper",
        "the paper's own Table 4",
        "",
        ("translation",),
        elsewhere("typed from Table 4 of Han, Carpuat and Boyd-Graber (2022)"),
        kept="typed from the paper",
    ),
)
