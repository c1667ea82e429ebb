"""Texts with human translations, and errors planted in them.  Everything drawn depends on (seed, text id) alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil

import numpy as np

from experiments.planted.kinds import KINDS, Unrelated, unrelated
from sqa.data.datasets import load_questions
from sqa.data.texts import load_parallel
from sqa.files.store import digest

SENTENCES = 5  # of a text that is made of single sentences, as many as a question has
# parallel text that is no XQB: human translations of news, of encyclopedias
TRAINING = {"es": ("newstest2011", "newstest2012", "flores-dev"), "pl": ("ntrex128", "flores-dev")}
NEIGHBOURS = 10  # other texts that strange words come from


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences and a human translation of each."""

    id: str
    sources: tuple[tuple[str, ...], ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A sentence pair of a text, and what was planted in it."""

    text: str  # its id
    source: tuple[str, ...]
    words: tuple[str, ...]
    kinds: tuple[str, ...]  # per word: the kind of the error planted there, "" = none


def rng_for(*key: object) -> np.random.Generator:
    """Random numbers that depend on the key alone."""
    return np.random.default_rng(int(digest(list(key))[:16], 16))


def references(language: str) -> Iterator[Text]:
    """XQB's questions with as many English sentences as source sentences."""
    for question in load_questions(f"xqb-{language}"):
        if len(question.reference) == len(question.sentences):
            lines = tuple(tuple(line.split()) for line in question.reference)
            yield Text(question.id, question.sentences, lines)


def parallel(language: str, name: str) -> Iterator[Text]:
    """A development or test set of translators, SENTENCES to a text."""
    pairs = ((tuple(s.split()), tuple(t.split())) for s, t, _ in load_parallel(f"{language}-en", name))
    rows, number = (pair for pair in pairs if all(pair)), 0
    while block := list(islice(rows, SENTENCES)):
        yield Text(f"{name}-{number}", tuple(s for s, _ in block), tuple(t for _, t in block))
        number += 1


def training(language: str, limit: int) -> list[Text]:
    """The first texts of each corpus of TRAINING."""
    return [text for name in TRAINING[language] for text in islice(parallel(language, name), limit)]


# ------------------------------------------------------------------------------------------------------------ planting


def plant(texts: Sequence[Text], errors: Sequence[int | float], kinds: Sequence[str], seed: int) -> list[Corrupted]:
    """The sentences of texts, corrupted.

    Each text draws one of `errors`, a number of errors or a share of its words, and for each error a kind; what
    cannot be planted (no number to change) gives way to another kind.
    """
    corrupted = []
    for text in texts:
        rng = rng_for(seed, text.id)
        others = _unrelated_of(text, texts, rng_for(seed, text.id, "others"))
        rate = errors[rng.integers(len(errors))]
        count = rate if isinstance(rate, int) else ceil(rate * sum(map(len, text.lines)))
        corrupted += _planted(text, count, kinds, others, rng)
    return corrupted


def _unrelated_of(text: Text, texts: Sequence[Text], rng: np.random.Generator) -> Unrelated:
    """Words of NEIGHBOURS other texts."""
    chosen = [texts[i] for i in rng.permutation(len(texts))[: NEIGHBOURS + 1] if texts[i].id != text.id]
    return unrelated([line for other in chosen[:NEIGHBOURS] for line in other.lines])


def _planted(
    text: Text, count: int, kinds: Sequence[str], others: Unrelated, rng: np.random.Generator
) -> list[Corrupted]:
    lines, wrong = [list(line) for line in text.lines], [[""] * len(line) for line in text.lines]
    dropped: set[int] = set()
    for _ in range(count):
        for kind in (kinds[i] for i in rng.permutation(len(kinds))):
            number = int(rng.integers(len(lines)))
            # a sentence with a clause dropped gets no other error, so that the missing words are known
            planted = None if number in dropped else KINDS[kind](text.sources[number], lines[number], others, rng)
            if planted is not None:
                span = slice(planted.start, planted.stop)
                lines[number][span] = planted.words
                wrong[number][span] = [kind] * len(planted.words)
                if not planted.words:
                    dropped.add(number)
                break
    return [
        Corrupted(text.id, source, tuple(line), tuple(of_words))
        for source, line, of_words in zip(text.sources, lines, wrong, strict=True)
    ]
