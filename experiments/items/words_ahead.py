"""Which words of a translation is wait-k too early for?  The share of each test set's words, by k.

The human translation is linked to its source by the word aligner (sqa/diagnose/alignment.py).  A target word is *ahead*
at k if its last linked source word has not been read when wait-k writes the word, after g(j) = min(k + floor((j - 1) /
r), |S|) source words: a system has to guess it, leave it out, or put it elsewhere.  Given for r = 1 and for catch-up,
r = target words per source word of the set; for all words, and for names (a capital inside the sentence, linked).

Questions with as many sentences in both languages count; intervals are over questions, or over sentences of news.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.lab.item import Item, dataset_digests, digest_of, folder_digest
from experiments.lab.ledger import Ledger, Row, row_of
from experiments.lab.tables import number
from experiments.studies.translation_table import SetConfig, load_set
from sqa.core.paths import DATA
from sqa.core.significance import Mean, bootstrap_many
from sqa.data.datasets import question_sets
from sqa.diagnose.alignment import Alignment, load_aligner
from sqa.pipeline.config import load
from sqa.results import markdown

Pair = tuple[Sequence[str], Sequence[str]]  # words of the source, words of the human translation
SHOWN = ("1", "3", "6")  # k


@dataclass(frozen=True, slots=True)
class WordsAheadConfig:
    """configs/studies.yaml:words_ahead."""

    sets: tuple[SetConfig, ...]
    k: tuple[int, ...]  # source words read before the first target word


def segments(entry: SetConfig) -> list[list[Pair]]:
    """The sentence pairs of each question, or one for each sentence."""
    whole = (q for q in load_set(entry, None)[1] if len(q.sentences) == len(q.reference))
    texts: Iterator[list[Pair]]
    texts = ([(x, y.split()) for x, y in zip(q.sentences, q.reference, strict=True)] for q in whole)
    return [kept for text in texts if (kept := [(x, y) for x, y in text if x and y])]


def last_linked(alignment: Alignment, words: int) -> list[int]:
    """Of each target word the last source word that it is linked to, from 1; 0 = it is linked to none."""
    last = [0] * words
    for i, j in alignment.links:
        last[j] = max(last[j], i + 1)
    return last


def counts(pair: Pair, last: Sequence[int], k: int, rate: float) -> tuple[int, int, int, int]:
    """(words ahead, words, names ahead, names) of a sentence pair."""
    source, target = pair
    ahead = [at > min(k + int(j / rate), len(source)) for j, at in enumerate(last)]
    names = [at > 0 and j > 0 and target[j][0].isupper() for j, at in enumerate(last)]
    return sum(ahead), len(ahead), sum(a and n for a, n in zip(ahead, names, strict=True)), sum(names)


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """The rows of every test set, at both rates and every k."""
    config = load(config_path, WordsAheadConfig)
    for entry in config.sets:
        yield from rows(segments(entry), entry, config.k)


def rows(texts: Sequence[Sequence[Pair]], entry: SetConfig, ks: Sequence[int]) -> Iterator[Row]:
    """The rows of one test set."""
    flat = [pair for text in texts for pair in text]
    aligned = iter(load_aligner(entry.pair).align(flat))
    last = [[last_linked(next(aligned), len(target)) for _, target in text] for text in texts]
    ratio = round(sum(len(y) for _, y in flat) / sum(len(x) for x, _ in flat), 2)
    kinds = [Mean("words-ahead"), Mean("names-ahead")]
    for pace, rate in (("1", 1.0), ("catch-up", ratio)):
        for k in ks:
            segments_of = (zip(text, links, strict=True) for text, links in zip(texts, last, strict=True))
            stats = np.array([np.sum([counts(p, at, k, rate) for p, at in of], 0) for of in segments_of], dtype=float)
            cell = (entry.pair, entry.name, pace, str(k))
            for kind, i in zip(kinds, bootstrap_many([stats[:, :2], stats[:, 2:]], kinds), strict=True):
                yield row_of(cell, kind.name, i, "0-1", f"{kind.name}|rate:{rate:g}|hmm")


def inputs(config_path: Path) -> dict[str, str]:
    """Digests of the config, the aligner's priors and the test sets."""
    config = load(config_path, WordsAheadConfig)
    pairs = sorted({entry.pair for entry in config.sets})
    names = [s.name if s.name in question_sets() else f"mt-{s.pair}-{s.name}" for s in config.sets]
    models = {f"model align-{pair}": folder_digest(DATA / "models" / f"align-{pair}") for pair in pairs}
    return {"config studies.yaml:words_ahead": digest_of(config), **models, **dataset_digests(names)}


def block(ledger: Ledger) -> list[str]:
    """A line for each test set and pace; a column for each k."""
    lines = []
    for pair in ledger.values("pair"):
        for name in dict.fromkeys(row.cell[1] for row in ledger.where(pair=pair)):
            for pace in ledger.values("rate"):
                cells = [ledger.one("words-ahead", pair=pair, set=name, rate=pace, k=k) for k in SHOWN]
                lines.append([pair, name, pace, *(number(cell, 2, interval=False) for cell in cells)])
    return markdown(["pair", "test set", "rate", *(f"k = {k}" for k in SHOWN)], lines)


ITEM = Item(
    name="words-ahead",
    shows="share of a human translation's words whose source is not read yet when wait-k has to write them",
    config="studies.yaml:words_ahead",
    columns=("pair", "set", "rate", "k"),
    measure=measure,
    inputs=inputs,
    blocks={"table": block},
)
