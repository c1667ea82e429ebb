"""What lies in the store, read back: the rows of a stage block by block, all stages of a run as traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import pyarrow as pa

from sqa.core import trace as tr
from sqa.core.errors import DataError
from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Guess, Question
from sqa.files.store import Stage, Store


class Traces(Sequence[QuestionTrace]):
    """The traces of a run in question order, read from the store a block at a time."""

    def __init__(self, store: Store, blocks: Sequence[Sequence[Question]], stages: Mapping[str, Stage]) -> None:
        self._store, self._blocks, self._stages = store, blocks, stages
        self._size = len(blocks[0]) if blocks else 1  # questions of every block but the last
        self._held: tuple[int, list[QuestionTrace]] = (-1, [])

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __iter__(self) -> Iterator[QuestionTrace]:
        for index in range(len(self._blocks)):
            yield from self.block(index)

    @overload
    def __getitem__(self, index: int) -> QuestionTrace: ...
    @overload
    def __getitem__(self, index: slice) -> list[QuestionTrace]: ...
    def __getitem__(self, index: int | slice) -> QuestionTrace | list[QuestionTrace]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        if self._held[0] != place // self._size:
            self._held = (place // self._size, self.block(place // self._size))
        return self._held[1][place % self._size]

    def block(self, index: int) -> list[QuestionTrace]:
        """The traces of one block of questions, all stages joined and checked."""
        questions = self._blocks[index]
        emissions = read_emissions(self._store, self._stages["translate"], index, questions)
        guesses: Mapping[str, Sequence[tuple[Guess, ...]]] | None = None
        buzzes: Mapping[str, tuple[Buzz, ...]] | None = None
        if "guess" in self._stages:
            guesses = read_guesses(self._store, self._stages["guess"], index, questions)
        if "buzz" in self._stages:
            buzzes = _read(self._store, self._stages["buzz"], index, questions, tr.BUZZES, tr.buzzes_rows)
        return [
            QuestionTrace(
                q,
                emissions[q.id],
                None if guesses is None else guesses[q.id],
                None if buzzes is None else buzzes[q.id],
            )
            for q in questions
        ]


def read_emissions(store: Store, stage: Stage, index: int, block: Sequence[Question]) -> dict[str, tr.Emissions]:
    """question id -> emissions, for every question of the block."""
    return _read(store, stage, index, block, tr.EMISSIONS, tr.emissions_rows)


def read_guesses(store: Store, stage: Stage, index: int, block: Sequence[Question]) -> dict[str, tr.Guesses]:
    """question id -> guesses at every step, for every question of the block."""
    return _read(store, stage, index, block, tr.GUESSES, tr.guesses_rows)


def _read(
    store: Store,
    stage: Stage,
    index: int,
    block: Sequence[Question],
    schema: pa.Schema,
    rows_of: Callable[[pa.Table], dict[str, Any]],
) -> dict[str, Any]:
    rows = rows_of(store.read(stage, index, schema))
    strangers = rows.keys() - {q.id for q in block}
    if strangers:
        problem = f"has rows of {min(strangers)!r}, not a question of this block"
        raise DataError(f"{store.block(stage, index)}: {problem}; delete it and run again")
    return {q.id: rows.get(q.id, ()) for q in block}
