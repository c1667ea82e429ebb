"""Store the rows of an experiment's own stage, one for each question, in blocks.

A killed command resumes at the first missing block.  A stage whose inputs have changed is recomputed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tqdm import tqdm

from sqa.core.errors import DataError
from sqa.core.trace import table_of
from sqa.files.store import Stage, Store


def cached_rows(
    store: Store,
    stage: Stage,
    ids: Sequence[str],
    make: Callable[[slice], Iterable[tuple[Any, ...]]],
    title: str,
    **kinds: str,
) -> list[tuple[Any, ...]]:
    """Return a tuple of values for each question, in order, with one value for each column in `kinds`.

    `make` computes the tuples of a block that is not in the store.  `title` is shown at the progress bar.
    """
    schema = {"question_id": "text", **kinds}
    blocks = -(-len(ids) // stage.block_size)
    if store.missing(stage, blocks):
        with store.working_on(stage):
            for index in tqdm(store.missing(stage, blocks), desc=title, unit="block", mininterval=2):
                block = slice(index * stage.block_size, (index + 1) * stage.block_size)
                rows = ([id, *row] for id, row in zip(ids[block], make(block), strict=True))
                store.write(stage, index, table_of(schema, rows))
    tables = [store.read(stage, index, schema) for index in range(blocks)]
    columns = [[value for table in tables for value in table[name].to_list()] for name in schema]
    if columns[0] != list(ids):
        raise DataError(f"{store.folder(stage)}: its rows do not match the questions; delete it and run again")
    return list(zip(*columns[1:], strict=True))
