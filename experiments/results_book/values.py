"""Per-question statistics of measured rows, from which intervals and p-values can be recomputed without runs.

    from experiments.results_book import values
    from sqa import metrics
    from sqa.core.differences import compare

    tables = values.read("over-k")
    best, full = (tables["xqb-es", "language model", k, "rerank", "ew"] for k in ("3", "full"))
    compare(best, full, *metrics.build(["ew"]))

`sqa results update ITEM` writes experiments/ledger/values/ITEM.npz next to the ledger of an item that has `values`.
In all tables of a data set, row i belongs to the same question.  A metric's score is computed from the sum of its
statistics over questions.
"""

from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import numpy as np

from experiments.results_book import grid_rows, pages
from sqa.api.experiment import Cell
from sqa.core.errors import DataError
from sqa.core.types import Floats
from sqa.files.atomic import write_bytes

Tables = Mapping[tuple[str, ...], Floats]  # a row's cell and metric -> statistics (n, d)


def path_of(item: str) -> Path:
    """Return the tracked file of an item."""
    return pages.LEDGERS / "values" / f"{item}.npz"


def of_grid(metrics: tuple[str, ...], wanted: Callable[[Cell], bool]) -> Callable[[Path, Path], Tables]:
    """Return a function of (config, runs) that returns the tables of `metrics` for the wanted cells of a grid."""

    def tables(config: Path, runs: Path) -> Tables:
        grid = grid_rows.finished(config, runs, wanted)
        return {(*one.cell.key, name): one.stats[name] for one in grid for name in metrics if name in one.stats}

    return tables


def write(item: str, tables: Tables) -> None:
    """Write the tables of an item; equal tables give equal bytes."""
    file = BytesIO()
    np.savez_compressed(file, **{"\t".join(key): table for key, table in tables.items()})
    path_of(item).parent.mkdir(exist_ok=True)
    write_bytes(path_of(item), file.getvalue())


def read(item: str) -> dict[tuple[str, ...], Floats]:
    """Return the tables of an item by cell and metric; raises DataError if none has been written."""
    try:
        with np.load(path_of(item), allow_pickle=False) as arrays:
            return {tuple(name.split("\t")): arrays[name] for name in arrays.files}
    except (OSError, ValueError) as error:
        raise DataError(f"{item}: no statistics of questions ({error}); run `sqa results update {item}`") from error
