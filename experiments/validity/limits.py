"""Limits of the instrument: unanswerable questions, words shown too early, and differences too small to detect.

answerable   questions whose answer page a bundled guesser can name; other questions count as lost in every metric
early        words of `reveal: diagonal` shown before their source word is read, by the word aligner
detectable   smallest difference between two texts at equal pace that a test at level .05 finds in 80% of cases
adaptation   Quizbowl tossups in the training text of the bundled translators, counted by their model cards
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

import numpy as np

from experiments.lab import grid_rows
from experiments.lab.ledger import Ledger, Row
from experiments.lab.pages import ledger_of
from experiments.lab.tables import number
from experiments.paper.figure3 import BEST
from experiments.paper.wait_k_runs import nameable
from experiments.validity.early_words import early
from guessers.bonus import load_bonus
from sqa import metrics as metric_names
from sqa.core import answers
from sqa.core.significance import Mean, means
from sqa.data.datasets import load_questions
from sqa.data.texts import load_tossups
from sqa.pipeline.paired import intervals
from sqa.pipeline.parts import Parts
from sqa.results import markdown

DATASETS = ("xqb-es", "xqb-pl")
ANSWERERS = ("rerank", "bm25", "gru", "bert")
KINDS = ("all", "answerable")
UNREAD = "unknown, with training texts"
FULL_INPUT = ("reference", "wait-k")  # bundled translators, without the language model
POWER = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
ARM = NormalDist().inv_cdf(0.975)
TOSSUPS = {  # model -> (tossups, all text), in thousands of English words per epoch, or pairs for language models
    "es-en": (4668, 4668 + 392 + 323 + 252 + 227 + 88 + 87 + 50 + 47 + 271),
    "pl-en": (2123, 2123 + 396 + 257 + 256 + 100 + 99 + 70 + 56 + 39 + 143),
    "lm-es-en": (231_717, 363_639),
}


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of all parts."""
    grid = grid_rows.finished(
        config_path, runs, lambda cell: (cell.contestant, str(cell.k)) == (BEST, "full") and cell.family in FULL_INPUT
    )
    for dataset in DATASETS:
        known = answerable(dataset)
        of_answers = ("answers", "no bundled guesser knows them")
        yield Row((dataset, *of_answers), "count", float((~known).sum()), n=len(known), unit="count")
        yield Row((dataset, "answers", UNREAD), "count", float(with_texts(dataset, known)), unit="count")
        yield from intervals((dataset, *of_answers), [(Mean("share"), means((~known).astype(float)))], unit="share")
        [ew] = metric_names.build(["ew"])
        for row in (row for row in grid if row.cell.dataset == dataset):
            for name, kept in (("all questions", known | True), ("answerable questions", known)):
                yield from intervals((dataset, row.cell.family, name), [(ew, row.stats["ew"][kept])])
        yield from early(dataset, ("shown",))
        yield from detectable(dataset)
    for model, (tossups, every) in TOSSUPS.items():
        yield Row((model, "training text", "tossups"), "share", tossups / every, unit="share")


def answerable(dataset: str) -> np.ndarray:
    """Return a boolean array (n,): whether a bundled guesser can name the answer page of each question."""
    return nameable([{"name": name} for name in ANSWERERS], load_questions(dataset), "answerable", Parts())


def with_texts(dataset: str, known: np.ndarray) -> int:
    """Count the questions not in `known` whose answer page has a tossup or a bonus clue for training."""
    titles = [tossup.page for tossup in load_tossups()] + [clue.page for clue in load_bonus()]
    pages = {answers.key(title) for title in titles if title}
    lost = (question for question, is_known in zip(load_questions(dataset), known, strict=True) if not is_known)
    return sum(answers.key(question.page) in pages for question in lost)


def detectable(dataset: str) -> Iterator[Row]:
    """Yield the smallest detectable difference in EW, from the interval of the effect of wait-2's text."""
    row = ledger_of("delay-or-text").one("ew", dataset=dataset, translator="language model", k="2", part="text alone")
    assert row is not None and row.low is not None and row.high is not None
    error = (row.high - row.low) / (2 * ARM)
    yield Row((dataset, "two texts at equal pace", "detectable"), "ew", POWER * error, n=row.n, unit="0-1")


def block(ledger: Ledger) -> list[str]:
    """Return a Markdown table with a row for each data set."""
    lines = []
    for dataset in DATASETS:
        unknown, words, names = ledger.where("share", dataset=dataset)
        human = [ledger.one("ew", dataset=dataset, subject="reference", what=f"{of} questions") for of in KINDS]
        [least] = ledger.where("ew", dataset=dataset, what="detectable")
        count = ledger.one("count", dataset=dataset, what="no bundled guesser knows them")
        impossible = f"{number(count)} of {unknown.n} ({number(unknown, interval=False)})"
        lines.append([dataset, impossible, *(number(row) for row in (*human, words, names, least))])
    head = ("impossible questions", "human EW, all", "answerable", "words early", "names early", "detectable")
    return markdown(("data set", *head), lines)


def adaptation(ledger: Ledger) -> list[str]:
    """Return a Markdown table with the share of tossups in the training text of each model."""
    rows = ledger.where("share", subject="training text")
    return markdown(("model", "tossups in its training text"), [[row.cell[0], number(row)] for row in rows])


ITEMS = (
    grid_rows.of_grid(
        "limits",
        "answers nobody knows, words shown too early, differences too small to see, tossups in training",
        columns=("dataset", "subject", "what"),
        measure=measure,
        blocks={"table": block, "adaptation": adaptation},
    ),
)
