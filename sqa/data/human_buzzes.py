"""When people buzzed, and whether they were right: the records behind expected wins.

A file of buzzes is JSON lines (.jsonl, .jsonl.zst) or CSV (.csv, with a header), one record a buzz:

    qid         the question
    correct     true or false; "prompt" counts as false, as in the published fit
    rel_pos     where in the question, 0 to 1; or word_index and n_words, whose quotient it is
    word_index, n_words   optional beside rel_pos: the word the buzz came on, the words of the question
    tournament, game      optional: buzzes of the same game (two teams) on the same question belong together
    player                optional: who buzzed

A row that is there again, the same in all its columns, is refused unless it is said that it is another person's; in the
manifest's own file, whose players have no names, 1,185 of 71,360 are.

`human-buzzes` is the name of the file that `sqa data list` knows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import misspelt
from sqa.data import download
from sqa.files import records
from sqa.files.atomic import file_digest

IN_MANIFEST = "human-buzzes"
COLUMNS = ("qid", "correct", "rel_pos", "word_index", "n_words", "tournament", "game", "player")
BeyondEnd = Literal["refuse", "keep", "clip", "drop"]  # what becomes of positions above 1
MOST_WORDS = 10**9  # of a question
Repeated = Literal["refuse", "keep"]  # what becomes of a row that is there again
REPEATED = ("refuse", "keep")
BEYOND_END = ("refuse", "keep", "clip", "drop")
_TRUTH = {"true": True, "1": True, "false": False, "0": False, "prompt": False}


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
    treatment: BeyondEnd = "refuse"  # what became of those

    def __len__(self) -> int:
        return len(self.position)

    def take(self, chosen: np.ndarray) -> Buzzes:
        """The buzzes at these indices or under this mask."""
        columns = ("question", "position", "correct", "word", "words", "game", "player")
        taken: dict[str, Any] = {c: None if getattr(self, c) is None else getattr(self, c)[chosen] for c in columns}
        return replace(self, **taken)


def load_buzzes(source: str, beyond_end: BeyondEnd = "refuse", repeated: Repeated = "refuse") -> Buzzes:
    """The buzzes in a file, or of a name of the manifest.

    `beyond_end` is for positions above 1 (somebody buzzed after the last word of a longer version of the text).  An
    empty file, a missing column, a value that is none: DataError with file and record.
    """
    if beyond_end not in BEYOND_END:
        raise ConfigError(f"beyond_end: must be one of {', '.join(BEYOND_END)}, got {beyond_end!r}")
    path = _path_of(source)
    numbered = list(_rows(path))
    if not numbered:
        raise DataError(f"{path}: no buzzes in it")
    listed = [record for _, record in numbered]
    places = [f"{path}:{line}: record {i}" for i, (line, _) in enumerate(numbered)]
    sha256 = file_digest(path)
    if repeated == "refuse" and sha256 not in {entry.sha256 for entry in download.entries()}:
        _refuse_repeated(path, numbered)
    _require_columns(path, places, listed)
    position = np.array([_position(*each) for each in zip(places, listed, strict=True)])
    found = Buzzes(
        name=path.name,
        sha256=sha256,
        question=np.array([_id(*each) for each in zip(places, listed, strict=True)]),
        position=position,
        correct=np.array([_truth(where, record["correct"]) for where, record in zip(places, listed, strict=True)]),
        word=_optional_integers(places, listed, "word_index"),
        words=_optional_integers(places, listed, "n_words"),
        game=_groups(places, listed, ("tournament", "game")) if "game" in listed[0] else None,
        player=np.array([str(record["player"]) for record in listed]) if "player" in listed[0] else None,
        beyond_end=int((position > 1).sum()),
        treatment=beyond_end,
    )
    return _treat(path, places, found)


def first_of_game(buzzes: Buzzes) -> Buzzes:
    """The earliest buzz of each game on each question (of equal ones the first in the file)."""
    if buzzes.game is None:
        raise DataError(f"{buzzes.name}: has no column 'game', so the first buzz of a game is not known")
    order = np.argsort(buzzes.position, kind="stable")
    pairs = list(zip(buzzes.game[order].tolist(), buzzes.question[order].tolist(), strict=True))
    return buzzes.take(np.sort(order[_first_places(pairs)]))


def regular_players(buzzes: Buzzes, questions: int = 20) -> Buzzes:
    """QANTA's filter: the first record of each player on each question, of players with that many questions or more.

    A file without players stays as it is.
    """
    if buzzes.player is None:
        return buzzes
    pairs = list(zip(buzzes.player.tolist(), buzzes.question.tolist(), strict=True))
    places = _first_places(pairs)
    first = buzzes.take(places)
    names, at, counts = np.unique(buzzes.player[places], return_inverse=True, return_counts=True)
    kept = first.take(counts[at] >= questions)
    if not len(kept):
        raise DataError(
            f"{buzzes.name}: none of its {len(names)} players answered {questions} questions or more; "
            f"the busiest answered {counts.max()}"
        )
    return kept


def _first_places(keys: Sequence[Any]) -> np.ndarray:
    """Where each distinct key occurs first, ascending."""
    seen: dict[Any, int] = {}
    for place, key in enumerate(keys):
        seen.setdefault(key, place)
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


def _require_columns(path: Path, places: Sequence[str], listed: Sequence[dict[str, Any]]) -> None:
    """The needed columns are there, and every record has a value in each column of ours that the first one has."""
    if wrong := misspelt(map(str, listed[0]), COLUMNS):
        raise DataError(f"{places[0]}: unknown column {wrong}")
    there = [name for name in COLUMNS if name in listed[0]]
    missing = [name for name in ("qid", "correct") if name not in there]
    if "rel_pos" not in there and not {"word_index", "n_words"} <= set(there):
        missing.append("rel_pos (or word_index and n_words)")
    if missing:
        raise DataError(f"{path}: missing columns: {', '.join(missing)}; it has {', '.join(map(str, listed[0]))}")
    for where, record in zip(places, listed, strict=True):
        lacking = [name for name in there if record.get(name) is None]
        if lacking:
            raise DataError(f"{where}: no value for {', '.join(lacking)}")


def _position(where: str, record: dict[str, Any]) -> float:
    if "rel_pos" in record:
        value = _number(where, "rel_pos", record["rel_pos"])
    else:
        words = _number(where, "n_words", record["n_words"])
        if words < 1:
            raise DataError(f"{where}: n_words: must be >= 1, got {record['n_words']}")
        value = _number(where, "word_index", record["word_index"]) / words
    if value < 0:
        raise DataError(f"{where}: position {value:g} is outside 0 to 1")
    return value


def _number(where: str, column: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: {column}: expected a number, got {value!r}")
    return number


def _truth(where: str, value: Any) -> bool:
    found = value if isinstance(value, bool) else _TRUTH.get(str(value).strip().lower())
    if found is None:
        raise DataError(f"{where}: correct: expected true, false or prompt, got {value!r}")
    return found


def _id(where: str, record: dict[str, Any]) -> str:
    if not str(record["qid"]).strip():
        raise DataError(f"{where}: qid: is empty")
    return str(record["qid"])


def _optional_integers(places: Sequence[str], listed: Sequence[dict[str, Any]], column: str) -> np.ndarray | None:
    if column not in listed[0]:
        return None
    found = []
    for where, record in zip(places, listed, strict=True):
        number = _number(where, column, record[column])
        if not number.is_integer() or abs(number) > MOST_WORDS:
            problem = f"expected a whole number of words up to {MOST_WORDS}, got {record[column]!r}"
            raise DataError(f"{where}: {column}: {problem}")
        found.append(int(number))
    return np.array(found, dtype=np.int64)


def _groups(places: Sequence[str], listed: Sequence[dict[str, Any]], columns: Sequence[str]) -> np.ndarray:
    """(n,) int64: equal where the columns are."""
    numbers: dict[tuple[Any, ...], int] = {}
    found = []
    for where, record in zip(places, listed, strict=True):
        key = tuple(record.get(column) for column in columns)
        for column, value in zip(columns, key, strict=True):
            if isinstance(value, (list, dict)):
                raise DataError(f"{where}: {column}: expected a text or a number, got {value!r}")
        found.append(numbers.setdefault(key, len(numbers)))
    return np.array(found, dtype=np.int64)


def _treat(path: Path, places: Sequence[str], buzzes: Buzzes) -> Buzzes:
    """Do with positions above 1 what the caller wants."""
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
        f"{places[first]}: position {buzzes.position[first]:g} is outside 0 to 1, as are {beyond.sum() - 1} "
        f"more of {len(buzzes)}; say what to do with those above 1: --beyond-end keep, clip or drop"
    )
