"""Tossups on three pages, which a classifier learns in seconds."""

from tables import tables_of

from sqa.data.texts import Tossup

TABLES = tables_of(__file__)

CLUES = TABLES["clues"]


def tossups(n: int) -> list[Tossup]:
    """Return `n` tossups per page, with the clues in either order."""
    return [
        Tossup(f"{page}-{i}", " ".join(clues if i % 2 else clues[::-1]), page, "Geography", page, "made up", None)
        for page, clues in CLUES.items()
        for i in range(n)
    ]
