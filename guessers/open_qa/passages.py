"""Passages to find answers in, and BM25 over them: each passage is a document, the question is the query.

    from guessers.open_qa.passages import PassageIndex, read_passages
    index = PassageIndex(read_passages(Path("wikipedia.jsonl")))
    index.search("who founded functionalism", 10)      # [Passage(...), ...]

A file of passages is JSON lines, .zst or not, one {"id", "title", "text"} each.  With no file at hand the passages are
what the mirror has: Quizbowl tossups and bonus parts, their answer as the title.  They describe things without naming
them, and few of them tell a date or a number: a stand-in for Wikipedia that knows much less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from guessers.bonus import load_bonus
from guessers.retrieval.bm25 import Bm25Config
from guessers.retrieval.counting import fit
from sqa.core.errors import DataError
from sqa.data import download
from sqa.data.texts import load_tossups
from sqa.files import records
from sqa.files.atomic import file_digest

K1, B = 1.2, 0.75  # Lucene's own, which XOR-TyDi's BM25 baseline uses
QUIZ_FILES = ("tossups", "bonus-parts")  # of the manifest


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text about something."""

    id: str
    title: str
    text: str


class _Profile(NamedTuple):
    text: str
    page: str


def read_passages(path: Path) -> list[Passage]:
    """The passages of a JSON lines file.  DataError names the first invalid record, or an id that occurs twice."""
    passages: dict[str, Passage] = {}
    for i, record in enumerate(records.json_lines(path)):
        where = f"{path}: record {i}"
        id = {"id": records.name_of(where, "id", record["id"])} if "id" in record else {}
        passage = records.converted(where, record | id, Passage)
        if passage.id in passages or not passage.text.strip():
            raise DataError(f"{where}: expected an id of its own and a text, got {str(record)[:80]}")
        passages[passage.id] = passage
    if not passages:
        raise DataError(f"{path}: no passages in it")
    return list(passages.values())


def quiz_passages() -> list[Passage]:
    """Tossups, then bonus parts, in the order of their files; titles are pages, or where none is known, answers."""
    return [
        Passage(f"{kind}-{item.id}", item.page or item.answer, item.text)
        for kind, items in (("tossup", load_tossups()), ("bonus", load_bonus()))
        for item in items
        if item.text
    ]


def fingerprint(path: Path | None) -> str:
    """sha256 of the file, or for None of the files that `quiz_passages` reads."""
    if path is None:
        return " ".join(download.entry(name).sha256 for name in QUIZ_FILES)
    if not path.is_file():
        raise DataError(f"{path}: no such file of passages")
    return file_digest(path)


class PassageIndex:
    """BM25 over titles and texts, English stems without stop words."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        width = len(str(len(passages)))  # so that pages, which the index sorts, stay in the order of the passages
        profiles = (_Profile(f"{p.title} {p.text}", f"{i:0{width}}") for i, p in enumerate(passages))
        self._guesser = fit(profiles, None, Bm25Config(k1=K1, b=B))

    def search(self, query: str, n: int) -> list[Passage]:
        """The best `n` passages, best first, equal scores in the passages' order; [] without an indexed word.

        A word that the query has twice counts twice.
        """
        [guesses] = self._guesser.guess([query], n)
        return [self.passages[int(guess.page)] for guess in guesses]
