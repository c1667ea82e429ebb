"""How much it matters that right answers are matched strictly: the same runs by both rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from experiments.answer_aliases import both_rules, differences
from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Row, row_of
from experiments.lab.tables import Column, pivot
from sqa.core.paths import CONFIGS
from sqa.files.store import Store
from sqa.run.config import load_run
from sqa.run.parts import Parts
from sqa.run.pipeline import run

SHOWN = (("ew", "EW"), ("oracle-ew", "oracle EW"), ("accuracy", "accuracy"))
STRICT, MORE = "strictly", "aliases add"


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Each measure by the strict rule, and what the generous rule adds."""
    store, parts = Store(runs), Parts()
    for language, text, guesser in product(("es", "pl"), ("human", "wait6"), ("bm25", "gru")):
        config = load_run(CONFIGS / f"xqb.yaml:answers_{language}_{text}_{guesser}")
        for metric, gap, _changed in differences(run(both_rules(config), store, parts=parts)):
            cell = (f"xqb-{language}", text, guesser)
            yield Row((*cell, STRICT), metric.name, gap.b, n=gap.n, unit=metric.unit, signature=metric.signature())
            yield row_of((*cell, MORE), metric.name, gap, metric.unit)


ITEM = Item(
    "answers",
    "what other names of an answer add to the strict rule",
    "",
    ("dataset", "translation", "guesser", "rule"),
    measure,
    inputs_of(("es-en", "pl-en", "bm25", "gru", "buzzer-mlp-bm25", "buzzer-mlp-gru"), ("xqb-es", "xqb-pl")),
    {
        "table": pivot(
            ("dataset", "translation", "guesser"),
            [Column(metric, f"{head} {rule}", sign=rule == MORE, cell={"rule": rule})
             for metric, head in SHOWN for rule in (STRICT, MORE)],
        )
    },
)  # fmt: skip
