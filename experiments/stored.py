"""Rows of a stage that is an experiment's own, one for each question, kept in the store block by block.

A killed command goes on where it was; a stage whose inputs changed is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from sqa.core.errors import DataError
from sqa.files.store import Stage, Store


def stored(
    store: Store,
    stage: Stage,
    ids: Sequence[str],
    make: Callable[[slice], Sequence[Mapping[str, Any]]],
    what: str,
    **columns: pa.DataType,
) -> list[dict[str, Any]]:
    """A row for each question, in order; `make` makes those of a block that the store lacks, `what` names them."""
    fields = {"question_id": pa.string(), **columns}
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])
    starts = range(0, len(ids), stage.block_size)
    if store.missing(stage, len(starts)):
        with store.working_on(stage):
            for index in tqdm(store.missing(stage, len(starts)), desc=what, unit="block", mininterval=2):
                block = slice(starts[index], starts[index] + stage.block_size)
                rows = [{"question_id": id, **row} for id, row in zip(ids[block], make(block), strict=True)]
                store.write(stage, index, pa.Table.from_pylist(rows, schema=schema))
    found = [row for index in range(len(starts)) for row in store.read(stage, index, schema).to_pylist()]
    if [row["question_id"] for row in found] != list(ids):
        raise DataError(f"{store.folder(stage)}: its rows are not those of the questions; delete it, run again")
    return found
