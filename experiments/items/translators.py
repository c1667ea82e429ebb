"""Translators on test sets: all of them, the stages of a training, the bonus on names; and what a model knew before."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from experiments.lab import grid_rows
from experiments.lab.item import Item, config_inputs, inputs_of, model_digests
from experiments.lab.ledger import Row
from experiments.lab.tables import across, columns, pivot
from experiments.studies import contamination
from experiments.studies.translation_table import COLUMNS, SHARES, TableConfig, quality_over_lag
from experiments.studies.translation_table import measure as translated
from sqa.files.store import Store
from sqa.pipeline.config import load

KS = ("3", "6", "full")


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """BLEU, chrF, DAL and odd sentences of every translator on every test set of a config of `sqa translations`."""
    config = load(config_path, TableConfig)
    for test in config.sets:
        yield from translated(replace(config, sets=(test,)), Store(runs))[0]


def with_models(config_path: Path) -> dict[str, str]:
    """Its config, and the bundled models that it names."""
    return {**config_inputs(config_path), **model_digests(load(config_path, TableConfig))}


def remembered(_: Path, __: Path) -> Iterator[Row]:
    """Nats per word, and the share of the next words, of each set of texts."""
    for name, nats, continued in contamination.measured("gemma3-270m", 147):
        yield Row((name,), "nats a word", *contamination.interval(nats), len(nats), "nats")
        yield Row((name,), "continued", *contamination.interval(continued), len(continued), "0-1")
        yield Row((name,), "most of one text", float(continued.max()), n=len(continued), unit="share")


CARD = columns("bleu: BLEU", interval=False) + columns("chrf: chrF", digits=1, interval=False) + columns(*SHARES)
ITEMS = (
    Item(
        "translations",
        "BLEU, chrF and lag of every translator on every test set (Figure 8)",
        "translation_table.yaml",
        COLUMNS,
        measure,
        with_models,
        {pair: pivot(("test", "k"), CARD, pair=pair, translator="wait-k") for pair in ("es-en", "pl-en")},
        {"docs/figure8.png": lambda ledger: quality_over_lag(ledger.rows)},
        kept="the news tests take hours",
    ),
    Item(
        "stages",
        "what each stage of the training of the small Transformers brings",
        "studies.yaml:stages",
        COLUMNS,
        measure,
        blocks={
            pair: pivot(
                ("translator",),
                [
                    *across("bleu", "k", KS, "XQB k = {}", test=f"xqb-{pair[:2]}"),
                    *across("bleu", "k", KS, "flores-dev k = {}", test="flores-dev"),
                ],
                (f"{pair}, BLEU",),
                pair=pair,
            )
            for pair in ("es-en", "pl-en")
        },
        kept="the models of the earlier stages are not shipped",
    ),
    Item(
        "copy-bonus",
        "which bonus for the spelling of names, on development sentences",
        "studies.yaml:bonuses",
        COLUMNS,
        measure,
        kept="minutes of the small Transformers",
    ),
    Item(
        "contamination",
        "whether the language model had read the questions before",
        "",
        ("texts",),
        remembered,
        inputs_of(datasets=("xqb-es", "xqb-pl", "human-buzzes")),
        {
            "table": pivot(
                ("texts",),
                columns("nats a word", digits=2) + columns("continued: of the next 12 words", "most of one text"),
            )
        },
        kept="minutes of the language model",
    ),
    grid_rows.of_grid("names-copied", "a bonus on the spelling of names that were read", config="studies.yaml:names"),
)
