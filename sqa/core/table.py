"""Rows as columns of numpy: what a stage makes and a store keeps.

A schema says the kind of each column: "i2", "i4", "f8" and "?" are numpy's numbers, "text" is a text or None, and a
kind in brackets, "[f8]", a list in every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Schema = Mapping[str, str]  # column -> kind


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one column, a row after the other."""

    kind: str
    values: NDArray[Any]  # (n,) numbers; of texts, indices into `words`, -1 = None
    words: tuple[str, ...] = ()  # the texts, each once
    offsets: NDArray[np.int32] | None = None  # (rows + 1,): the list of row i is values[offsets[i] : offsets[i + 1]]

    @classmethod
    def of(cls, kind: str, rows: Sequence[Any]) -> Column:
        """A column of values, or of sequences of them if the kind is a list."""
        if kind.startswith("["):
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
            return replace(cls.of(kind[1:-1], [*chain.from_iterable(rows)]), kind=kind, offsets=offsets)
        if kind != "text":
            return cls(kind, np.array(rows, dtype=kind))
        words: dict[str, int] = {}
        indices = (-1 if text is None else words.setdefault(text, len(words)) for text in rows)
        return cls(kind, np.fromiter(indices, np.int32, len(rows)), tuple(words))

    def to_list(self) -> list[Any]:
        """The values of the rows as Python objects, lists where the kind is a list."""
        flat = self.values.tolist()
        if self.kind.strip("[]") == "text":
            flat = [None if index < 0 else self.words[index] for index in flat]
        return flat if self.offsets is None else [flat[a:b] for a, b in pairwise(self.offsets.tolist())]


Table = Mapping[str, Column]


def table_of(schema: Schema, rows: Iterable[Sequence[Any]]) -> Table:
    """Rows, their values in the order of the schema, as columns."""
    columns = [*zip(*rows, strict=True)] or [()] * len(schema)
    return {name: Column.of(kind, values) for (name, kind), values in zip(schema.items(), columns, strict=True)}
