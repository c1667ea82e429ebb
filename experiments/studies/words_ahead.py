"""Share of words that wait-k must write before their source words are read, by test set and k.

The human translation is linked to its source by the word aligner (sqa/diagnose/alignment.py).  A target word is
*ahead* at k if wait-k writes it before reading its last linked source word.  At that time wait-k has read g(j) =
min(k + floor((j - 1) / r), |S|) source words, so a system has to guess, omit or move the word.  Shares are
given for r = 1 and for catch-up, where r is the number of target words per source word of the set.  They are given
for all words and for names (linked, capitalised words that do not begin a sentence).

Only questions with the same number of sentences in both languages count.  Intervals are over questions, or over
sentences of news.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Row
from experiments.lab.tables import Column, pivot
from experiments.translation_sets import SetConfig, load_set
from sqa.core.significance import Mean
from sqa.diagnose.alignment import Alignment, load_aligner
from sqa.pipeline.config import load
from sqa.pipeline.paired import intervals

WORDS, NAMES = Mean("words-ahead"), Mean("names-ahead")
Pair = tuple[Sequence[str], Sequence[str]]  # words of the source, words of the human translation


@dataclass(frozen=True, slots=True)
class WordsAheadConfig:
    """Keys of configs/studies.yaml:words_ahead."""

    sets: tuple[SetConfig, ...]
    k: Annotated[tuple[int, ...], "source words read before the first target word"]


def segments(entry: SetConfig) -> list[list[Pair]]:
    """Return the sentence pairs of each question; a sentence of news is a question with one pair."""
    whole = (q for q in load_set(entry, None)[1] if len(q.sentences) == len(q.reference))
    texts: Iterator[list[Pair]]
    texts = ([(x, y.split()) for x, y in zip(q.sentences, q.reference, strict=True)] for q in whole)
    return [kept for text in texts if (kept := [(x, y) for x, y in text if x and y])]


def last_linked(alignment: Alignment, words: int) -> list[int]:
    """Return the 1-based position of the last linked source word of each target word; 0 if it has no link."""
    last = [0] * words
    for i, j in alignment.links:
        last[j] = max(last[j], i + 1)
    return last


def counts(pair: Pair, last: Sequence[int], k: int, rate: float) -> tuple[int, int, int, int]:
    """Return (words ahead, words, names ahead, names) of a sentence pair."""
    source, target = pair
    ahead = [at > min(k + int(j / rate), len(source)) for j, at in enumerate(last)]
    names = [at > 0 and j > 0 and target[j][0].isupper() for j, at in enumerate(last)]
    return sum(ahead), len(ahead), sum(a and n for a, n in zip(ahead, names, strict=True)), sum(names)


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of every test set, at both rates and every k."""
    config = load(config_path, WordsAheadConfig)
    for entry in config.sets:
        yield from rows(segments(entry), entry, config.k)


def rows(texts: Sequence[Sequence[Pair]], entry: SetConfig, ks: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of one test set."""
    flat = [pair for text in texts for pair in text]
    aligned = iter(load_aligner(entry.pair).align(flat))
    last = [[last_linked(next(aligned), len(target)) for _, target in text] for text in texts]
    ratio = round(sum(len(y) for _, y in flat) / sum(len(x) for x, _ in flat), 2)
    for pace, rate in (("1", 1.0), ("catch-up", ratio)):
        for k in ks:
            segments_of = (zip(text, links, strict=True) for text, links in zip(texts, last, strict=True))
            stats = np.array([np.sum([counts(p, at, k, rate) for p, at in of], 0) for of in segments_of], dtype=float)
            cell = (entry.pair, entry.name, pace, str(k))
            for row in intervals(cell, [(WORDS, stats[:, :2]), (NAMES, stats[:, 2:])], unit="0-1"):
                yield replace(row, signature=f"{row.metric}|rate:{rate:g}|hmm")


EARLY = [Column("words-ahead", f"k = {k}", 2, interval=False, cell={"k": k}) for k in (1, 3, 6)]
SETS = ("mt-es-en-flores-dev", "mt-es-en-newstest2013", "mt-pl-en-flores-dev", "mt-pl-en-newstest2020")

ITEMS = (
    Item(
        name="words-ahead",
        shows="share of words of a human translation that wait-k must write before their source is read",
        config="studies.yaml:words_ahead",
        columns=("pair", "set", "rate", "k"),
        measure=measure,
        inputs=inputs_of(("align-es-en", "align-pl-en"), ("xqb-es", "xqb-pl", *SETS)),
        blocks={"table": pivot(("pair", "set", "rate"), EARLY, ("pair", "test set", "rate"))},
    ),
)
