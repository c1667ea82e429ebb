"""Accuracy of guessers on complete questions, and pairs of guessers after every word."""

from collections.abc import Iterator
from pathlib import Path

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Row, row_of
from experiments.results_book.tables import Column, columns, pivot
from guessers import evaluate, paired

SETS = evaluate.DATASETS
WHOLE, EVERY = "complete questions", "every word"
PAIRS = (("rerank", "tfidf"),)
_BASES = ("bm25", "gru")


def complete(_: Path, __: Path) -> Iterator[Row]:
    """Yield each guesser's accuracy at 1, 10 and 50 and MRR on complete questions."""
    for guesser, dataset, n, scores in evaluate.measured(("rerank", "tfidf", "bm25", "bert", "gru"), SETS):
        for name, score in scores.items():
            yield Row((guesser, dataset), name, score, n=n, unit="0-1")


def in_pairs(_: Path, __: Path) -> Iterator[Row]:
    """Yield the scores of two guessers and their difference on the same questions."""
    for a, b in PAIRS:
        for read, sets in ((WHOLE, SETS[:1]), (EVERY, SETS[1:])):
            for dataset, n, metric, gap in paired.differences(a, b, sets, read == WHOLE):
                cell = (f"{a}, {b}", dataset, WHOLE if metric == "accuracy" else EVERY)
                yield Row((*cell, a), metric, gap.a, n=n, unit="0-1")
                yield Row((*cell, b), metric, gap.b, n=n, unit="0-1")
                yield row_of((*cell, "difference"), metric, gap, "0-1")


OF_PAIR = [
    Column(metric, head, cell={"dataset": dataset, "read": WHOLE if metric == "accuracy" else EVERY})
    for metric, dataset, head in (
        ("accuracy", SETS[0], "guessdev: accuracy"),
        ("accuracy", SETS[1], "XQB Spanish: accuracy"),
        ("oracle-ew", SETS[1], "oracle EW"),
        ("accuracy", SETS[2], "XQB Polish: accuracy"),
        ("oracle-ew", SETS[2], "oracle EW"),
    )
]


ITEMS = (
    Item(
        "guessers",
        "accuracy of the guessers on complete questions, human English text",
        "",
        ("guesser", "dataset"),
        complete,
        inputs_of(("rerank", "bm25", "bert", "gru"), SETS),
        {
            "short": pivot(
                ("guesser",),
                columns("acc@1: guessdev at 1", "acc@10: at 10", cell={"dataset": "guessdev"})
                + columns("acc@1: XQB Spanish at 1", cell={"dataset": "xqb-es"})
                + columns("acc@1: XQB Polish at 1", cell={"dataset": "xqb-pl"}),
            ),
            **{
                guesser: pivot(
                    ("dataset",),
                    columns(*evaluate.SCORES),
                    ("human English text, complete questions",),
                    guesser=guesser,
                )
                for guesser in ("bm25", "tfidf", "gru", "bert")
            },
        },
    ),
    Item(
        "paired-guessers",
        "two guessers and their difference on the same questions, complete and after every word",
        "",
        ("pair", "dataset", "read", "guesser"),
        in_pairs,
        inputs_of(("rerank", *_BASES), SETS),
        {a: pivot(("guesser",), OF_PAIR, pair=f"{a}, {b}") for a, b in PAIRS},
    ),
)
