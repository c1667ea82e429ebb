"""Glosses: translations after rare source words, as in "zarazą[plague]", for a language model trained with them.

The phrase table contains rare words that a small language model has hardly seen.  A gloss is attached to its word and
read together with it, so wait-k sees no word too early.  In training, some glosses are omitted or wrong, so that the
model does not trust them blindly.  Dinu et al. (ACL 2019) annotate terms in the same way.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from smt.statistical.lexicon import Table, load_table
from smt.statistical.packed import PHRASES, read_phrases
from sqa.data.priors import form, strip_edges

VERSION = 1  # increase when the glosses change
COMMON = 300  # a word with more occurrences in the table needs no gloss
LEAST = 0.2  # minimum p(e|f) of a gloss
# shares in training: texts without glosses, words without gloss, less likely glosses
PLAIN_TEXTS, PLAIN_WORDS, OTHER = 0.15, 0.3, 0.12


@dataclass(frozen=True, slots=True)
class Glosses:
    """The translations of one language's rare words."""

    table: Table  # translations by source form, most likely first
    counts: Mapping[str, int]  # occurrences of each source form
    language: str  # ISO 639-1

    def word(self, word: str, other: int = 0) -> str:
        """Return a source word with its gloss, or unchanged.

        `other` is the rank of the gloss among the translations, 0 for the most likely.
        """
        core = strip_edges(word)
        stem = form(core, self.language)
        rows = self.table.get(stem, ())
        if not rows or rows[0][1] < LEAST or self.counts[stem] > COMMON or rows[0][0].lower() == core.lower():
            return word
        return word.replace(core, f"{core}[{rows[min(other, len(rows) - 1)][0]}]", 1)

    def training_text(self, text: str, rng: np.random.Generator) -> str:
        """Return a source text for training, with most of its glosses or, sometimes, with none."""
        if rng.random() < PLAIN_TEXTS:
            return text
        words = text.split()
        ranks = rng.integers(1, 4, len(words)) * (rng.random(len(words)) < OTHER)
        plain = rng.random(len(words)) < PLAIN_WORDS
        return " ".join(
            word if bare else self.word(word, rank) for word, bare, rank in zip(words, plain, ranks, strict=True)
        )


@lru_cache(maxsize=2)
def load_glosses(folder: Path, language: str) -> Glosses:
    """Load the glosses of a packed phrase-based model; `language` is the ISO 639-1 code of the source."""
    counts: Counter[str] = Counter()
    for row in read_phrases(folder / PHRASES):
        if " " not in row.source and " " not in row.target:
            counts[form(row.source, language)] += row.both
    return Glosses(load_table(folder, language), counts, language)
