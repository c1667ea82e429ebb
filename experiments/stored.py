"""Rows of a stage that is an experiment's own, one for each question, kept in the store block by block.

A killed command goes on where it was; a stage whose inputs changed is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tqdm import tqdm

from sqa.core.errors import DataError
from sqa.core.trace import table_of
from sqa.files.store import Stage, Store


def stored(
    store: Store,
    stage: Stage,
    ids: Sequence[str],
    make: Callable[[slice], Sequence[Mapping[str, Any]]],
    what: str,
    **kinds: str,
) -> list[dict[str, Any]]:
    """A row for each question, in order; `make` makes those of a block that the store lacks, `what` names them."""
    schema = {"question_id": "text", **kinds}
    starts = range(0, len(ids), stage.block_size)
    if store.missing(stage, len(starts)):
        with store.working_on(stage):
            for index in tqdm(store.missing(stage, len(starts)), desc=what, unit="block", mininterval=2):
                block = slice(starts[index], starts[index] + stage.block_size)
                rows = ([id, *map(row.__getitem__, kinds)] for id, row in zip(ids[block], make(block), strict=True))
                store.write(stage, index, table_of(schema, rows))
    tables = (store.read(stage, index, schema) for index in range(len(starts)))
    columns = ([each[name].to_list() for name in schema] for each in tables)
    found = [dict(zip(schema, row, strict=True)) for each in columns for row in zip(*each, strict=True)]
    if [row["question_id"] for row in found] != list(ids):
        raise DataError(f"{store.folder(stage)}: its rows are not those of the questions; delete it, run again")
    return found
