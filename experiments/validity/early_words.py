"""Count words of `reveal: diagonal` that come before their source word, by the word aligner and two rules.

shown    at target word j, ceil(j |S| / |T|) source words have been read, as under `reveal: diagonal`, and the last
         linked source word comes later
placed   the position of the word, j / |T|, is before the position of its last linked source word, i / |S|

Names are linked, capitalised words that do not begin a sentence.  The share for names is among all names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from experiments.studies.words_ahead import last_linked, segments
from experiments.translation_sets import SetConfig
from sqa.core.significance import Mean
from sqa.diagnose.alignment import load_aligner
from sqa.pipeline.paired import intervals
from sqa.results import markdown

DATASETS = ("xqb-es", "xqb-pl")
PARTS, RULES = ("words", "names"), ("shown", "placed")


def early(dataset: str, rules: Sequence[str] = RULES) -> Iterator[Row]:
    """Yield the share of words and of names that come before their source word, by each rule."""
    pair = f"{dataset.removeprefix('xqb-')}-en"
    texts = segments(SetConfig(dataset, pair))
    aligned = iter(load_aligner(pair).align([each for text in texts for each in text]))
    stats = []
    for text in texts:
        counted = np.zeros((len(RULES), len(PARTS), 2))  # early, all
        for source, target in text:
            last = np.array(last_linked(next(aligned), len(target)))
            place = np.arange(1, len(target) + 1) * len(source) / len(target)
            names = np.array([j > 0 and word[0].isupper() for j, word in enumerate(target)]) & (last > 0)
            for index, read in enumerate((np.ceil(place), place)):
                for column, of_part in enumerate((np.ones_like(names), names)):
                    counted[index, column] += (((last > read) & of_part).sum(), of_part.sum())
        stats.append(counted)
    table = np.array(stats)
    for rule, (column, part) in product(rules, enumerate(PARTS)):
        cell = (dataset, "reveal: diagonal", f"{part} {rule} before their source word")
        yield from intervals(cell, [(Mean("share"), table[:, RULES.index(rule), column])], unit="share")


def measure(_: Path, __: Path) -> Iterator[Row]:
    """Yield the rows of both data sets."""
    for dataset in DATASETS:
        yield from early(dataset)


def block(ledger: Ledger) -> list[str]:
    """Return a Markdown table with the words placed early of each data set; the item `limits` has those shown early."""
    lines = []
    for dataset in DATASETS:
        rows = (ledger.one("share", dataset=dataset, what=f"{part} placed before their source word") for part in PARTS)
        lines.append([dataset, *map(number, rows)])
    return markdown(("data set", *(f"{part} placed early" for part in PARTS)), lines)


ITEMS = (
    Item(
        name="early-words",
        shows="words of `reveal: diagonal` shown, or placed, before their source word",
        config="",
        columns=("dataset", "subject", "what"),
        measure=measure,
        inputs=inputs_of(("align-es-en", "align-pl-en"), DATASETS),
        blocks={"table": block},
    ),
)
