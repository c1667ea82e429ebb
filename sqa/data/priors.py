"""Word forms and priors of the word aligner: link counts of stemmed word pairs in parallel text.

Word aligners link function words by chance, so an unaligned "the" or an untranslated "que" is not worth reporting
(`is_content`).

The bundled priors were counted by `smt/training/alignment_priors.py` of commit 12c84463.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import snowballstemmer

from sqa.core import DATA, DataError, language_of, marks, unmarked
from sqa.files import CONFIG, folder_digest, read_tensors, unpack_integers, unpack_strings

KIND, VERSION = "alignment-priors", 1
PREFIX = "align-"  # prefix of bundled folder names
SHORT = 4  # letters; shorter words are similar only if equal
SHARED = 0.6  # minimum common prefix of two similar words, as a share of the longer word


# -------------------------------------------------------------------------------------------------- content words

_EDGES = re.compile(r"^[\W_]+|[\W_]+$")


@lru_cache(maxsize=1 << 17)
def is_content(word: str, language: str) -> bool:
    """Return True if a word, without punctuation at its edges, has a letter or digit and is not a function word.

    In a language without a list of function words, every word is a content word, so omissions appear longer.
    """
    bare = strip_edges(word).replace("’", "'").lower()
    return bool(bare) and bare not in language_of(language).function_words


def strip_edges(word: str) -> str:
    """Return the word without punctuation at its beginning and end: "(Paris)," -> "Paris"."""
    if letter_marks := marks(word):
        return re.sub(rf"^(?:[^\w{letter_marks}]|_)+|(?:[^\w{letter_marks}]|_)+$", "", word)
    return _EDGES.sub("", word)


# ------------------------------------------------------------------------------------------------------- word forms


@cache
def _stemmer(language: str) -> Any:
    """Return the stemmer of a language, or None if it has none."""
    name = language_of(language).stemmer
    return snowballstemmer.stemmer(name) if name else None


@lru_cache(maxsize=1 << 18)
def form(word: str, language: str) -> str:
    """Return the aligner's form of a word: lower case, no punctuation at the edges, no "'s", stemmed.

    A word of a language without a stemmer is not stemmed, and a word of punctuation only is returned unchanged.
    """
    plain = unicodedata.normalize("NFC", word).replace("’", "'").lower()
    bare = strip_edges(plain).removesuffix(language_of(language).possessive)
    stemmer = _stemmer(language)
    return str(stemmer.stemWord(bare)) if bare and stemmer else bare or plain


@lru_cache(maxsize=1 << 18)
def folded(word: str) -> str:
    """Return the word in lower case without diacritics or punctuation at the edges."""
    return unmarked(strip_edges(word).lower().replace("ł", "l"))


def similar(source: str, target: str) -> bool:
    """Return whether two words have nearly the same spelling, as names and loan words do: "Napoleona", "Napoleon's".

    Similar words are equal except for case, diacritics and punctuation at their edges, or share a prefix of at least
    SHORT letters and at least the share SHARED of the longer word.
    """
    a, b = folded(source), folded(target)
    if a == b:
        return bool(a)
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return same >= SHORT and same >= SHARED * max(len(a), len(b))


# ----------------------------------------------------------------------------------------------------------- priors


@dataclass(frozen=True)
class Priors:
    """Link and occurrence counts of word forms (see `form`) of two languages in parallel text."""

    pair: str  # "es-en"
    links: Mapping[tuple[str, str], int]  # (source form, target form) -> number of links
    source: Mapping[str, int]  # source form -> occurrences; rare forms are absent
    target: Mapping[str, int]
    digest: str = ""  # digest of the source files

    @classmethod
    def load(cls, folder: Path) -> Priors:
        """Read a folder of priors.  Raises DataError if it is damaged."""
        tensors, config = read_tensors(folder, KIND, VERSION)
        try:
            words = {side: unpack_strings(tensors[f"{side}_words"]) for side in ("source", "target")}
            numbers = {name: unpack_integers(tensors[name]) for name in tensors if not name.endswith("_words")}
            counts = {side: dict(zip(words[side], numbers[f"{side}_counts"].tolist(), strict=True)) for side in words}
            if any(len(counts[side]) < len(words[side]) or 0 in counts[side].values() for side in words):
                raise ValueError("a word occurs twice or has no occurrences")
            columns = (np.cumsum(numbers["link_source"]), numbers["link_target"], numbers["link_counts"])
            rows = zip(*(column.tolist() for column in columns), strict=True)
            links = {(words["source"][s], words["target"][t]): count for s, t, count in rows}
            return cls(str(config["pair"]), links, counts["source"], counts["target"], folder_digest(folder))
        except (KeyError, IndexError, ValueError) as error:
            raise DataError(f"{folder}: the priors are damaged ({error}); restore them") from error


@cache
def bundled_priors(pair: str) -> Priors | None:
    """Return the bundled priors of a pair ("es-en"); None if there are none."""
    folder = DATA / "models" / f"{PREFIX}{pair}"
    return Priors.load(folder) if (folder / CONFIG).is_file() else None
