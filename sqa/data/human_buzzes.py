"""When people buzzed, and whether they were right: the records behind expected wins.

A file of buzzes is JSON lines (.jsonl, .jsonl.zst) or CSV (.csv, with a header), one record a buzz:

    qid         the question
    correct     true or false; "prompt" counts as false, as in the published fit
    rel_pos     where in the question, 0 to 1; or word_index and n_words, whose quotient it is
    word_index, n_words   optional beside rel_pos: the word the buzz came on, the words of the question
    tournament, game      optional: buzzes of the same game (two teams) on the same question belong together
    player                optional: who buzzed

A row that repeats an earlier one in all columns is refused (`repeated` = "keep" takes it); in the manifest's own file,
whose players have no names, 1,185 of 71,360 rows repeat another.

`human-buzzes` is the name of the file in the manifest (`sqa data list`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from msgspec import Meta, Struct

from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import misspelt
from sqa.data import download
from sqa.files import records
from sqa.files.atomic import file_digest

IN_MANIFEST = "human-buzzes"
COLUMNS = ("qid", "correct", "rel_pos", "word_index", "n_words", "tournament", "game", "player")
BeyondEnd = Literal["refuse", "keep", "clip", "drop"]  # how positions above 1 are treated
MOST_WORDS = 10**9  # of a question
Repeated = Literal["refuse", "keep"]  # how a row that occurs twice is treated
_TRUTH = {"true": True, "1": True, "false": False, "0": False, "prompt": False}
Name = str | int | float | None


class Row(Struct):
    """The columns of a record that are read."""

    qid: Annotated[str, Meta(pattern=r"\S")] | int
    correct: Any
    rel_pos: Annotated[float, Meta(ge=0, le=MOST_WORDS)] = 0.0
    word_index: Annotated[int, Meta(ge=0, le=MOST_WORDS)] = 0
    n_words: Annotated[int, Meta(ge=1, le=MOST_WORDS)] = 1
    tournament: Name = None
    game: Name = None
    player: Name = None


@dataclass(frozen=True)
class Buzzes:
    """n buzzes in the order of the file; every array has shape (n,)."""

    name: str  # of the file
    sha256: str  # of its bytes
    question: np.ndarray  # str, ids
    position: np.ndarray  # float64, fraction of the question
    correct: np.ndarray  # bool
    word: np.ndarray | None  # int64, word_index as the file has it; None: the file has none
    words: np.ndarray | None  # int64, n_words
    game: np.ndarray | None  # int64, buzzes with equal numbers are of one game; None: the file does not say
    player: np.ndarray | None  # str; None: the file does not say
    beyond_end: int = 0  # records whose position was above 1
    treatment: BeyondEnd = "refuse"  # of those

    def __len__(self) -> int:
        return len(self.position)

    def take(self, chosen: np.ndarray) -> Buzzes:
        """The buzzes at these indices or under this mask."""
        columns = ("question", "position", "correct", "word", "words", "game", "player")
        taken: dict[str, Any] = {c: None if getattr(self, c) is None else getattr(self, c)[chosen] for c in columns}
        return replace(self, **taken)


def load_buzzes(source: str, beyond_end: BeyondEnd = "refuse", repeated: Repeated = "refuse") -> Buzzes:
    """The buzzes in a file, or of a name of the manifest.

    `beyond_end` is for positions above 1 (a buzz after the last word of a longer version of the text).  An
    empty file, a missing column, an invalid value: DataError with file and record.
    """
    for key, value, kind in (("beyond_end", beyond_end, BeyondEnd), ("repeated", repeated, Repeated)):
        if value not in get_args(kind):
            raise ConfigError(f"{key}: must be one of {', '.join(get_args(kind))}, got {value!r}")
    path = _path_of(source)
    numbered = list(_rows(path))
    if not numbered:
        raise DataError(f"{path}: no buzzes in it")
    listed = [record for _, record in numbered]
    origins = [f"{path}:{line}: record {i}" for i, (line, _) in enumerate(numbered)]
    sha256 = file_digest(path)
    if repeated == "refuse" and sha256 not in {entry.sha256 for entry in download.entries()}:
        _refuse_repeated(path, numbered)
    _require_columns(path, origins, listed)
    # the numbers of CSV are texts
    rows = [records.converted(*each, Row, strict=False) for each in zip(origins, listed, strict=True)]
    indices = {key: index for index, key in enumerate(dict.fromkeys((row.tournament, row.game) for row in rows))}
    has_position = "rel_pos" in listed[0]
    position = np.array([row.rel_pos if has_position else row.word_index / row.n_words for row in rows])

    def optional(column: str, values: Iterable[Any], kind: type) -> np.ndarray | None:
        return np.array(list(values), dtype=kind) if column in listed[0] else None

    buzzes = Buzzes(
        name=path.name,
        sha256=sha256,
        question=np.array([str(row.qid) for row in rows]),
        position=position,
        correct=np.array([_truth(where, row.correct) for where, row in zip(origins, rows, strict=True)]),
        word=optional("word_index", (row.word_index for row in rows), np.int64),
        words=optional("n_words", (row.n_words for row in rows), np.int64),
        game=optional("game", (indices[row.tournament, row.game] for row in rows), np.int64),
        player=optional("player", (str(row.player) for row in rows), str),
        beyond_end=int((position > 1).sum()),
        treatment=beyond_end,
    )
    return _treat(path, origins, buzzes)


def first_of_game(buzzes: Buzzes) -> Buzzes:
    """The earliest buzz of each game on each question (of equal ones the first in the file)."""
    if buzzes.game is None:
        raise DataError(f"{buzzes.name}: has no column 'game', so the first buzz of a game is not known")
    order = np.argsort(buzzes.position, kind="stable")
    pairs = list(zip(buzzes.game[order].tolist(), buzzes.question[order].tolist(), strict=True))
    return buzzes.take(np.sort(order[_first_indices(pairs)]))


def regular_players(buzzes: Buzzes, questions: int = 20) -> Buzzes:
    """QANTA's filter: the first record of each player on each question, of players with that many questions or more.

    A file without players stays as it is.
    """
    if buzzes.player is None:
        return buzzes
    pairs = list(zip(buzzes.player.tolist(), buzzes.question.tolist(), strict=True))
    indices = _first_indices(pairs)
    first = buzzes.take(indices)
    names, at, counts = np.unique(buzzes.player[indices], return_inverse=True, return_counts=True)
    kept = first.take(counts[at] >= questions)
    if not len(kept):
        raise DataError(
            f"{buzzes.name}: none of its {len(names)} players answered {questions} questions or more; "
            f"the busiest answered {counts.max()}"
        )
    return kept


def _first_indices(keys: Sequence[Any]) -> np.ndarray:
    """The index of the first occurrence of each distinct key, ascending."""
    seen: dict[Any, int] = {}
    for index, key in enumerate(keys):
        seen.setdefault(key, index)
    return np.array(list(seen.values()), dtype=np.int64)


# --- reading -----------------------------------------------------------------------------------------------------


def _path_of(source: str) -> Path:
    if source in {entry.name for entry in download.entries()}:
        return download.path_of(source)
    path = Path(source)
    if not path.is_file():
        raise DataError(
            f"{source}: there is no such file of buzzes; give a .jsonl, .jsonl.zst or .csv, or {IN_MANIFEST}"
        )
    return path


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records with the line that each is on, or ends on."""
    if path.suffix == ".csv":
        reader = csv.DictReader(line.removesuffix("\r") + "\n" for line in records.lines(path))
        try:
            for record in reader:
                yield reader.line_num, record
        except csv.Error as error:  # among them a lone \r, which ends the lines of some old programs' files
            raise DataError(f"{path}:{reader.line_num}: not CSV whose lines end in \\n ({error})") from error
    else:
        yield from records.numbered_lines(path)


def _refuse_repeated(path: Path, numbered: Sequence[tuple[int, dict[str, Any]]]) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for line, record in numbered:
        first = seen.setdefault(tuple(sorted(map(repr, record.items()))), line)
        if first != line:
            raise DataError(
                f"{path}:{line}: the same row as line {first}; a buzz counts once. If they are of different people, "
                "give them a column `player`, or say --repeated keep (`sqa curve fit`)"
            )


def _require_columns(path: Path, origins: Sequence[str], listed: Sequence[dict[str, Any]]) -> None:
    """The required columns exist, and every record has a value in each of COLUMNS that the first record has."""
    if wrong := misspelt(map(str, listed[0]), COLUMNS):
        raise DataError(f"{origins[0]}: unknown column {wrong}")
    present = [name for name in COLUMNS if name in listed[0]]
    missing = [name for name in ("qid", "correct") if name not in present]
    if "rel_pos" not in present and not {"word_index", "n_words"} <= set(present):
        missing.append("rel_pos (or word_index and n_words)")
    if missing:
        raise DataError(f"{path}: missing columns: {', '.join(missing)}; it has {', '.join(map(str, listed[0]))}")
    for where, record in zip(origins, listed, strict=True):
        if None in record:
            raise DataError(f"{where}: has more cells than the header")
        lacking = [name for name in present if record.get(name) is None]
        if lacking:
            raise DataError(f"{where}: no value for {', '.join(lacking)}")


def _truth(where: str, value: Any) -> bool:
    correct = value if isinstance(value, bool) else _TRUTH.get(str(value).strip().lower())
    if correct is None:
        raise DataError(f"{where}: correct: expected true, false or prompt, got {value!r}")
    return correct


def _treat(path: Path, origins: Sequence[str], buzzes: Buzzes) -> Buzzes:
    """The buzzes with positions above 1 kept, clipped or dropped, as `treatment` says."""
    beyond = buzzes.position > 1
    if not beyond.any() or buzzes.treatment == "keep":
        return buzzes
    if buzzes.treatment == "clip":
        return replace(buzzes, position=np.minimum(buzzes.position, 1.0))
    if buzzes.treatment == "drop":
        if beyond.all():
            raise DataError(f"{path}: all {len(buzzes)} buzzes are beyond the end (position above 1)")
        return buzzes.take(~beyond)
    first = int(np.flatnonzero(beyond)[0])
    raise DataError(
        f"{origins[first]}: position {buzzes.position[first]:g} is outside 0 to 1, as are {beyond.sum() - 1} "
        f"more of {len(buzzes)}; say what to do with those above 1: --beyond-end keep, clip or drop"
    )
