"""Studies of answers: the effect of strict answer matching, and of perturbed copies of the questions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from experiments.lab.item import Item, elsewhere, inputs_of
from experiments.lab.ledger import Row, row_of
from sqa import metrics as metric_names
from sqa.core.differences import compare_many
from sqa.core.paths import CONFIGS
from sqa.files.store import Store
from sqa.pipeline.config import AnswersConfig, RunConfig, load_run
from sqa.pipeline.engine import run
from sqa.pipeline.parts import Parts
from sqa.pipeline.spread import make_ahead

STRICT, MORE = "strictly", "aliases add"


MEASURES = ("ew", "oracle-ew", "stable-ew", "accuracy", "mrr")


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield each measure under the strict rule, and the gain when aliases of an answer also count."""
    store, parts = Store(runs), Parts()
    for language, text, guesser in product(("es", "pl"), ("human", "wait6"), ("bm25", "gru")):
        config = load_run(CONFIGS / f"xqb.yaml:answers_{language}_{text}_{guesser}")
        yield from both_rules((f"xqb-{language}", text, guesser), config, store, parts)


def both_rules(cell: tuple[str, ...], config: RunConfig, store: Store, parts: Parts) -> Iterator[Row]:
    """Yield the measures of a run under the strict rule, and the gain with aliases on the same traces."""
    config_of_rules = replace(config, metrics=MEASURES, quality=(), answers=AnswersConfig("aliases"))
    stats, strict = run(config_of_rules, store, parts=parts, ahead=make_ahead).stats, metric_names.build(MEASURES)
    pairs = [(stats[f"{name}@aliases"], stats[name]) for name in MEASURES]
    for metric, gap in zip(strict, compare_many(pairs, strict, 1000, config.seed), strict=True):
        yield Row((*cell, STRICT), metric.name, gap.b, n=gap.n, unit=metric.unit, signature=metric.signature())
        yield row_of((*cell, MORE), metric.name, gap, metric.unit)


ITEMS = (
    Item(
        "answers",
        "effect of other names of an answer, compared with the strict rule",
        "",
        ("dataset", "translation", "guesser", "rule"),
        measure,
        inputs_of(("es-en", "pl-en", "bm25", "gru", "buzzer-mlp-bm25", "buzzer-mlp-gru"), ("xqb-es", "xqb-pl")),
    ),
    Item(
        "board",
        "effect of perturbations on expected wins and on the final answer",
        "",
        ("kind", "model"),
        elsewhere("`sqa board export sqa-es` of the board that docs/board.md makes"),
        kept="a board of three models",
    ),
)
