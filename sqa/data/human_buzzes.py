"""Load human buzzes: their positions and correctness, the data behind expected wins.

A file of buzzes is JSON lines (.jsonl, .jsonl.zst), one record per buzz:

    qid         the question
    correct     true or false; "prompt" counts as false, as in the published fit
    rel_pos     position in the question, 0 to 1
    any other   not used

A row that repeats an earlier one in all columns is an error, except in the manifest's own file.  That file has no
player names, and 1,185 of its 71,360 rows are repeated.

`human-buzzes` is the name of the file in the manifest (`sqa data list`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct

from sqa.core import DataError, misspelt
from sqa.data import download
from sqa.files import file_digest, records

IN_MANIFEST = "human-buzzes"
BeyondEnd = Literal["refuse", "clip"]  # how positions above 1 are treated
MOST = 1e9  # greatest position
Numbered = Sequence[tuple[int, dict[str, Any]]]  # line, record


class Row(Struct):
    """The columns of a record that are used."""

    qid: Annotated[str, Meta(pattern=r"\S")] | int
    correct: bool | Literal["prompt"]
    rel_pos: Annotated[float, Meta(ge=0, le=MOST)]


@dataclass(frozen=True)
class Buzzes:
    """n buzzes ordered by position; every array has shape (n,)."""

    name: str  # name of the file
    sha256: str  # sha256 of the file
    question: np.ndarray  # str, ids
    position: np.ndarray  # float64, fraction of the question
    correct: np.ndarray  # bool
    beyond_end: int = 0  # number of records with a position above 1

    def __len__(self) -> int:
        return len(self.position)


def load_buzzes(source: str, beyond_end: BeyondEnd = "refuse") -> Buzzes:
    """Return the buzzes of a file, or of a name in the manifest, ordered by position.

    A position above 1 (a buzz on a longer version of the text) is an error, or becomes 1 if `beyond_end` is "clip".
    Raises DataError, with file and line, for an empty file, a missing column or an invalid value.
    """
    path = _path_of(source)
    numbered = list(records.numbered_lines(path))
    if not numbered:
        raise DataError(f"{path}: contains no buzzes")
    sha256 = file_digest(path)
    if sha256 not in {entry.sha256 for entry in download.entries()}:
        _refuse_repeated(path, numbered)
    if wrong := misspelt(numbered[0][1], Row.__struct_fields__):
        raise DataError(f"{path}:{numbered[0][0]}: unknown column {wrong}")
    rows = [records.converted(f"{path}:{line}", record, Row) for line, record in numbered]
    beyond = [(line, row.rel_pos) for (line, _), row in zip(numbered, rows, strict=True) if row.rel_pos > 1]
    if beyond and beyond_end == "refuse":
        (line, position), more = beyond[0], f"as are {len(beyond) - 1} more of {len(rows)}"
        remedy = "--beyond-end clip sets those above 1 to 1"
        raise DataError(f"{path}:{line}: position {position:g} is outside 0 to 1, {more}; {remedy}")
    rows.sort(key=lambda row: min(row.rel_pos, 1.0))
    return Buzzes(
        name=path.name,
        sha256=sha256,
        question=np.array([str(row.qid) for row in rows]),
        position=np.array([min(row.rel_pos, 1.0) for row in rows]),
        correct=np.array([row.correct is True for row in rows]),
        beyond_end=len(beyond),
    )


# --- reading -----------------------------------------------------------------------------------------------------


def _path_of(source: str) -> Path:
    if source in {entry.name for entry in download.entries()}:
        return download.path_of(source)
    path = Path(source)
    if not path.is_file():
        raise DataError(f"{source}: this file of buzzes does not exist; give a .jsonl, .jsonl.zst or {IN_MANIFEST}")
    return path


def _refuse_repeated(path: Path, numbered: Numbered) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for line, record in numbered:
        first = seen.setdefault(tuple(sorted(map(repr, record.items()))), line)
        if first != line:
            raise DataError(
                f"{path}:{line}: the same row as line {first}; a buzz counts once. If different people buzzed, add "
                "a column `player`"
            )
