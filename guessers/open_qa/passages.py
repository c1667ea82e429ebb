"""Passages as sources of answers, and BM25 over them: each passage is a document, the question is the query.

    from guessers.open_qa.passages import PassageIndex, read_passages
    index = PassageIndex(read_passages(Path("wikipedia.jsonl")))
    index.search("who founded functionalism", 10)      # [Passage(...), ...]

A file of passages has JSON lines {"id", "title", "text"}, optionally compressed as .zst.  Without a file the passages
are Quizbowl tossups and bonus parts from the mirror, with their answer as the title.  These texts describe things
without naming them, and few give a date or a number.  They stand in for Wikipedia with far less information.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guessers.bonus import load_bonus
from guessers.retrieval.bm25 import Bm25Config
from guessers.retrieval.counting import fit
from guessers.text import PageText
from sqa.core import DataError
from sqa.data import download
from sqa.data.texts import load_tossups
from sqa.files import file_digest, records

K1, B = 1.2, 0.75  # Lucene's defaults, which XOR-TyDi's BM25 baseline uses
QUIZ_FILES = ("tossups", "bonus-parts")  # names in the manifest


@dataclass(frozen=True, slots=True)
class Passage:
    """A text about one topic."""

    id: str
    title: str
    text: str


def read_passages(path: Path) -> list[Passage]:
    """Return the passages of a JSON lines file; raises DataError for the first invalid record or repeated id."""
    passages: dict[str, Passage] = {}
    for i, record in enumerate(records.json_lines(path)):
        where = f"{path}: record {i}"
        id = {"id": records.name_of(where, "id", record["id"])} if "id" in record else {}
        passage = records.converted(where, record | id, Passage)
        if passage.id in passages or not passage.text.strip():
            raise DataError(f"{where}: expected a unique id and a text, got {str(record)[:80]}")
        passages[passage.id] = passage
    if not passages:
        raise DataError(f"{path}: contains no passages")
    return list(passages.values())


def quiz_passages() -> list[Passage]:
    """Return tossups, then bonus parts, in file order; titles are pages, or answers if no page is known."""
    return [
        Passage(f"{kind}-{item.id}", item.page or item.answer, item.text)
        for kind, items in (("tossup", load_tossups()), ("bonus", load_bonus()))
        for item in items
        if item.text
    ]


def fingerprint(path: Path | None) -> str:
    """Return the sha256 of the file `path`, or of the files that `quiz_passages` reads if `path` is None."""
    if path is None:
        return " ".join(download.entry(name).sha256 for name in QUIZ_FILES)
    if not path.is_file():
        raise DataError(f"{path}: this file of passages does not exist")
    return file_digest(path)


class PassageIndex:
    """BM25 index over titles and texts: English stems without stop words."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        width = len(str(len(passages)))  # zero-padded, so that sorted pages keep the order of the passages
        profiles = (PageText(f"{p.title} {p.text}", f"{i:0{width}}") for i, p in enumerate(passages))
        self._guesser = fit(profiles, None, Bm25Config(k1=K1, b=B))

    def search(self, query: str, n: int) -> list[Passage]:
        """Return the best `n` passages, best first, ties in the passages' order; [] if no word of the query is indexed.

        A word that occurs twice in the query counts twice.
        """
        [guesses] = self._guesser.guess([query], n)
        return [self.passages[int(guess.page)] for guess in guesses]
