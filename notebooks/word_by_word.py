"""A translator of your own, for your_own_system.ipynb: a word for a word, from a list; what is not listed is copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = dict(line.split() for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True)
class WordByWordConfig:
    """The keys of `translator:` in a config."""

    known: bool = True  # false: copy every word


class WordByWord:
    def __init__(self, config: WordByWordConfig) -> None:
        self.words = WORDS if config.known else {}

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        for word in source:  # READ
            yield self.words.get(word.lower(), word)  # WRITE

    def fingerprint(self) -> str:
        return f"word-by-word-1 {sorted(self.words.items())}"


def build(config: WordByWordConfig) -> WordByWord:
    return WordByWord(config)
