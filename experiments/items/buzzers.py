"""When to answer: every buzzer of a guesser beside the best that its guesses allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.grid import Row as GridRow
from experiments.lab import grid_rows
from experiments.lab.item import Item, elsewhere, inputs_of
from experiments.lab.ledger import Row, row_of
from experiments.lab.tables import Column, columns, pivot
from experiments.studies import buzzer_report as report
from experiments.studies.buzzer_report import AGAINST
from sqa import metrics as metric_names
from sqa.core.paths import CONFIGS
from sqa.core.significance import compare

PLAYED = (  # what the rows call the questions, guesser, what the report calls them
    ("dev", "bm25", "dev"),
    ("dev", "gru", "dev"),
    ("guessdev", "bm25", "guessdev"),
    ("xqb-es", "bm25", f"{CONFIGS}/xqb.yaml:es_wait6_translated"),
    ("xqb-pl", "bm25", f"{CONFIGS}/xqb.yaml:pl_wait6_translated"),
)
CONTESTANTS, METRICS = ("rerank", "bm25"), ("ew", "accuracy", "stable-ew")


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Each buzzer's expected wins and what happens at its answers."""
    for name, guesser, questions in PLAYED:
        histories = report.questions_of(guesser, questions, runs)
        yield from report.rows((name, guesser), report.outcomes(guesser, histories), histories)


def both(config: Path, runs: Path) -> Iterator[Row]:
    """The two contestants of every translator at every k, and their paired difference."""
    cells: dict[tuple[str, str, str], dict[str, GridRow]] = {}
    for row in grid_rows.finished(config, runs):
        cells.setdefault((row.cell.dataset, row.cell.translator, str(row.cell.k)), {})[row.cell.guesser] = row
    for cell, rows in cells.items():
        if all(name in rows for name in CONTESTANTS):
            for metric in metric_names.build(METRICS):
                for name in CONTESTANTS:
                    yield row_of((*cell, name), metric.name, rows[name].intervals[metric.name], metric.unit)
                a, b = (rows[name].stats[metric.name] for name in CONTESTANTS)
                gap = compare(a, b, metric)
                yield row_of((*cell, "difference"), metric.name, gap, metric.unit)


LONG = [
    *columns("ew: EW", interval=False),
    *columns("of stable", "right at answer", "position", "never", "ece: ECE", "brier: Brier"),
    *columns(AGAINST, sign=True),
]
ORACLES = ("stable oracle", "oracle")
SHOWN = ("recurrent", "mlp", "logistic", "best share threshold here", "best margin threshold here", *ORACLES)
TRAINED = ("mlp-bert", "mlp-fusion", "mlp-rerank", "mlp-rerank-translated")
BUZZERS = ("recurrent", "mlp", "logistic", "threshold")

ITEMS = (
    Item(
        "buzzers",
        "expected wins of every buzzer beside the best that its guesses allow",
        "",
        ("questions", "guesser", "buzzer"),
        measure,
        inputs_of([f"buzzer-{kind}-{guesser}" for kind in BUZZERS for guesser in ("bm25", "gru")]),
        {
            "dev": pivot(
                ("buzzer",),
                [column._replace(head=f"{guesser}: {column.head}", cell={"guesser": guesser})
                 for guesser in ("bm25", "gru") for column in (LONG[0], LONG[-1])],
                questions="dev",
                buzzer=SHOWN,
            ),
            **{name: pivot(("buzzer",), LONG, questions="dev", guesser=name) for name in ("bm25", "gru")},
            "others": pivot(
                ("questions", "guesser", "buzzer"), columns("ew: EW"), questions=("guessdev", "xqb-es", "xqb-pl")
            ),
            "translated": pivot(
                ("buzzer",),
                [Column("ew", f"{head}, our wait-6", cell={"questions": name})
                 for name, head in (("xqb-es", "Spanish"), ("xqb-pl", "Polish"))],
                guesser="bm25",
                buzzer=("mlp", "mlp-translated, silent", "mlp-translated", *ORACLES),
            ),
        },
        kept="guesses for thousands of tossups, an hour",
    ),
    Item(
        "trained-buzzers",
        "what the training of a buzzer prints of the tossups it did not learn from",
        "",
        ("buzzer", "tossups"),
        elsewhere("`sqa train buzzer` prints them"),
        blocks={
            name: pivot(("tossups",), columns("ew", "stable ew", "of stable", "ece"), buzzer=name) for name in TRAINED
        },
        kept="trainings",
    ),
    Item(
        "reading-or-buzzing",
        "rerank and BM25, each with its buzzer for translations, paired",
        "ablation.yaml",
        ("dataset", "translator", "k", "contestant"),
        both,
        grid_rows.inputs,
        {
            "table": pivot(
                ("dataset", "translator", "k"),
                columns("ew: EW", "accuracy", "stable-ew: stable EW"),
                contestant="difference", k="6", translator=("wait-k", "language model"),
            )
        },
    ),
)  # fmt: skip
