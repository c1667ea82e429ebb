"""Loads what is trained on: English tossups, and parallel text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqa.core import answers
from sqa.core.errors import ConfigError, DataError
from sqa.data import download, sentences
from sqa.files import records


@dataclass(frozen=True, slots=True)
class Tossup:
    """One English question to train on. `page` is None where the answer has no known page."""

    id: str
    text: str
    page: str | None
    category: str
    answer: str  # the packet's main answer
    tournament: str
    year: int | None


class Pair(NamedTuple):
    """One line of parallel text."""

    source: str
    target: str  # English
    corpus: str  # where the line is from


def load_tossups() -> list[Tossup]:
    """All English training tossups, in the order of the file.

    The file gives 149 questions an id that an earlier one has; the later ones get "#2" appended.
    """
    return _tossups(download.path_of("tossups"), page="page", answer="answer", tournament="set")


def load_guessdev() -> list[Tossup]:
    """The QANTA 2018 guessdev fold; pages in the tossups' spelling, None for the 21 without one."""
    return _tossups(download.path_of("guessdev"), page="page_canon", answer="answer_raw", tournament="tournament")


def _tossups(path: Path, *, page: str, answer: str, tournament: str) -> list[Tossup]:
    tossups: list[Tossup] = []
    seen: dict[str, int] = {}
    for i, record in enumerate(records.json_lines(path)):
        where = f"{path}: record {i}"
        name = records.text_of(where, "id", record.get("id"))
        seen[name] = seen.get(name, 0) + 1
        text = " ".join(records.text_of(where, "text", record.get("text")).split())
        if not text:
            raise DataError(f"{where}.text: a tossup needs a text, this one has none")
        title = record.get(page)
        tossups.append(
            Tossup(
                id=name if seen[name] == 1 else f"{name}#{seen[name]}",
                text=text,
                page=None if title is None else answers.canonical(records.text_of(where, page, title)),
                category=record.get("category") or "",
                answer=records.text_of(where, answer, record.get(answer)),
                tournament=record.get(tournament) or "",
                year=record.get("year"),
            )
        )
    return tossups


def parallel_parts(pair: str) -> tuple[str, ...]:
    """The parts of a language pair ("es-en", "pl-en") in the manifest: "train", "newstest2013", ..."""
    start = f"mt-{pair}-"
    return tuple(item.name.removeprefix(start) for item in download.entries() if item.name.startswith(start))


def load_parallel(pair: str, part: str) -> Iterator[Pair]:
    """The sentence pairs of one part. The corpus is column 3 of a training mix, the part's own name elsewhere."""
    parts = parallel_parts(pair)
    if part not in parts:
        available = ", ".join(parts) or "none for this pair"
        raise ConfigError(f"parallel text {pair} {part!r} is not in the manifest; known: {available}")
    return _pairs(download.path_of(f"mt-{pair}-{part}"), part)


def _pairs(path: Path, part: str) -> Iterator[Pair]:
    if part == "train":
        yield from (Pair(source, target, corpus) for source, target, corpus in records.table(path, 3))
    else:
        yield from (Pair(source, target, part) for source, target in records.table(path, 2))


def load_own_pairs(path: Path, pair: str) -> Iterator[Pair]:
    """Sentence pairs of your own, `source<TAB>target` or `source<TAB>target<TAB>corpus` a line; the corpus is "own".

    Languages without blanks between words are given them ("zh-en": `sentences.spaced`).  No such file, another number
    of columns, an empty side: DataError by line.
    """
    languages = pair.split("-")
    for number, line in enumerate(records.lines(path), 1):
        row = line.removesuffix("\r").split("\t")
        if len(row) not in (2, 3) or not all(cell.strip() for cell in row):
            raise DataError(
                f"{path}:{number}: expected source, target and, if you like, a corpus, tab-separated, none empty"
            )
        source, target = (sentences.spaced(text, language) for text, language in zip(row, languages, strict=False))
        yield Pair(source, target, row[2] if len(row) == 3 else "own")
