"""Table 4: Finnish and Russian questions through English, ours and the paper's."""

from collections.abc import Iterator
from pathlib import Path

from experiments.lab.item import Item, elsewhere
from experiments.lab.ledger import Row
from experiments.lab.tables import Column, pivot
from experiments.paper import table4
from experiments.paper.table4 import COLUMNS, Table4Config, rows_of
from sqa.files.store import Store
from sqa.pipeline.config import load

SETS = ("dev-engspan", "train-engspan")
HEADS = {"f1": "F1", "f1.spans": "F1 spans", "found": "found"}


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Every system and reader on every set and language, and the differences of every two systems."""
    config = load(config_path, Table4Config)
    return rows_of(table4.measure(config, Store(runs))[0], config)


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
                [
                    Column(metric, f"{name}: {head}", cell={"set": name, "reader": "typed"})
                    for name in SETS
                    for metric, head in HEADS.items()
                ],
                language="mean",
            )
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
