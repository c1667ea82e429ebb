"""Count the replies and tokens that a language model used to translate a run, including cached replies.

<runs>/store/translate/<key>/usage-0003.json   counts of the fourth block of questions
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sqa.core.errors import DataError
from sqa.files.records import parse_json
from sqa.files.store import Stage, Store
from sqa.results import Row


@contextmanager
def counting(store: Store, stage: Stage, index: int, usage: Counter[str]) -> Iterator[None]:
    """Write the counts collected in `usage` inside the `with` block to a file next to block `index`."""
    usage.clear()
    yield
    store.backend.write(store.folder(stage) / f"usage-{index:04d}.json", json.dumps(usage, sort_keys=True).encode())


def spent(store: Store, stage: Stage, prices: tuple[float, float] | None = None) -> dict[str, float]:
    """Return the counts of a stage's blocks, and their cost if there are prices and the model reports tokens.

    Args:
        store: The store of the run.
        stage: The stage of the translator.
        prices: Price per million tokens, for input and output.

    Raises:
        DataError: If a file is damaged.
    """
    total, folder = Counter[str](), store.folder(stage)
    for name in store.backend.names(folder):
        if name.startswith("usage-"):
            try:
                total.update(parse_json(store.backend.read(folder / name)))
            except (ValueError, TypeError) as error:
                raise DataError(f"{folder / name}: damaged; delete its folder and run the config again") from error
    counts: dict[str, float] = dict(sorted(total.items()))
    if prices and "prompt-tokens" in total:
        counts["cost"] = (prices[0] * total["prompt-tokens"] + prices[1] * total["reply-tokens"]) / 1e6
    return counts


def rows(store: Store, stage: Stage) -> list[Row]:
    """Return the counts as rows of a report."""
    counts = spent(store, stage)
    n, signature = int(counts.get("replies", 0)), "of the translator"
    units = ("tokens" if name.endswith("tokens") else "replies" for name in counts)
    return [
        Row((), name, counts[name], n=n, unit=unit, signature=signature)
        for name, unit in zip(counts, units, strict=True)
    ]
