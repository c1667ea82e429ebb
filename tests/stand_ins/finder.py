"""A guesser that answers a question about the source once the translation contains a right answer."""

import json
from collections.abc import Sequence

from sqa.core import DATA, Guess

LINES = (DATA / "listening" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
RIGHT = {record["question"]: record["answers"] for record in map(json.loads, LINES)}


class Finder:
    """Guesser that names no pages."""

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        return [[] for _ in texts]

    def answer(self, asked: str, texts: Sequence[str], n: int) -> list[list[Guess]]:
        return [[Guess(a, 1.0) for a in RIGHT[asked] if a in text][:1] for text in texts]

    def fingerprint(self) -> str:
        return "finder"
