"""User-defined translator of your_own_system.ipynb: translates word by word from a list, and copies other words."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = dict(line.split() for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True)
class WordByWord:
    """A word-by-word translator, whose fields are its config keys."""

    known: bool = True  # false: copy every word

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        for word in source:  # READ
            yield WORDS.get(word.lower(), word) if self.known else word  # WRITE

    def fingerprint(self) -> str:
        return str(sorted(WORDS.items()))
