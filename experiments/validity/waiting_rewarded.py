"""Does waiting gain facts where a translation has more to guess?  XQB against news and FLORES.

XQB's references follow the order of the source, so waiting for more than a few words cannot help there (item
`words-ahead`).  In news and FLORES, several times as many words must be guessed.  Prediction: from k = 3 on, full
input gains more facts in these sets than on XQB.  Facts are extracted from the final text, so the pace has no effect.

    gain         facts of the full-input text minus facts of the text at k, on the same sentences
    beyond XQB   gain on a set minus gain on XQB, positive if the prediction holds
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Ledger, Row, row_of
from experiments.lab.tables import number
from experiments.translation_sets import SetConfig, load_set
from sqa import metrics as metric_names
from sqa.core.differences import compare, compare_pooled
from sqa.core.k import FULL, K
from sqa.core.significance import Interval
from sqa.core.types import Floats
from sqa.files.store import Store
from sqa.pipeline.config import of_parts
from sqa.pipeline.engine import run
from sqa.pipeline.paired import intervals
from sqa.results import markdown

METRICS = ("facts", "bleu")
SETS = {"es-en": ("xqb-es", "newstest2013", "flores-dev"), "pl-en": ("xqb-pl", "newstest2020", "flores-dev")}
FEW = ("3", "6")
KS: tuple[K, ...] = (3, 6, FULL)
QUESTIONS, SENTENCES = 147, 500  # sizes of XQB and of the other sets
Tables = Mapping[str, Floats]  # k -> statistics


def texts(pair: str, name: str, runs: Path) -> Mapping[str, Tables]:
    """Return, for each metric, a dict that maps k to the statistics of the bundled Transformer's translations."""
    questions = load_set(SetConfig(name, pair), QUESTIONS if name.startswith("xqb") else SENTENCES)[1]
    found: dict[str, dict[str, Floats]] = {metric: {} for metric in METRICS}
    for k in KS:
        config = of_parts(translator={"name": "waitk", "model": pair, "k": k}, metrics=METRICS)
        result = run(config, Store(runs), questions=questions, progress=False)
        for metric in METRICS:
            found[metric][str(k)] = result.stats[metric]
    return found


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the value and the gain of every set and k, and the gain minus XQB's gain."""
    for pair, (xqb, *others) in SETS.items():
        of_xqb = texts(pair, xqb, runs)
        yield from rows(pair, xqb, of_xqb)
        for name in others:
            found = texts(pair, name, runs)
            yield from rows(pair, name, found)
            for k in FEW:
                yield beyond((pair, name, k, "beyond XQB"), found["facts"], of_xqb["facts"], k)


def rows(pair: str, name: str, found: Mapping[str, Tables]) -> Iterator[Row]:
    """Yield the values and gains of one set."""
    for metric in metric_names.build(METRICS):
        tables = found[metric.name]
        for k, stats in tables.items():
            yield from intervals((pair, name, k, "value"), [(metric, stats)])
            if k != FULL:
                gain = compare(tables[FULL], stats, metric)
                yield row_of((pair, name, k, "gain"), metric.name, gain, metric.unit, metric.signature())


def beyond(cell: tuple[str, ...], of_set: Tables, of_xqb: Tables, k: str) -> Row:
    """Return the gain on a set minus the gain on XQB; the sets are resampled independently."""
    [facts] = metric_names.build(["facts"])
    half = compare_pooled([(of_set[FULL], of_set[k]), (of_xqb[k], of_xqb[FULL])], facts)  # mean of gain and -gain
    whole = Interval(2 * half.value, 2 * half.low, 2 * half.high, half.n)
    return row_of(cell, "facts", whole, facts.unit, facts.signature())


def block(ledger: Ledger) -> list[str]:
    """Return a Markdown table with a row for each set: facts at full input, gain from each k, gain minus XQB's gain."""
    lines = []
    for pair, name in dict.fromkeys(row.cell[:2] for row in ledger.rows):
        cell: dict[str, Any] = {"pair": pair, "set": name}
        whole = number(ledger.one("facts", k=FULL, part="value", **cell), interval=False)
        gains = [number(ledger.one("facts", k=k, part="gain", **cell), sign=True) for k in FEW]
        more = [number(ledger.one("facts", k=k, part="beyond XQB", **cell), sign=True) for k in FEW]
        lines.append([pair, name, whole, *gains, *more])
    heads = [f"{what} k = {k}" for what in ("gain from", "beyond XQB,") for k in FEW]
    return markdown(("pair", "test set", "facts, full input", *heads), lines)


ITEMS = (
    Item(
        name="waiting-rewarded",
        shows="facts that full input gains over wait-k, on XQB and where more words must be guessed",
        config="",
        columns=("pair", "set", "k", "part"),
        measure=measure,
        inputs=inputs_of(
            models=("es-en", "pl-en"),
            datasets=(
                *("xqb-es", "xqb-pl", "mt-es-en-flores-dev", "mt-es-en-newstest2013"),
                *("mt-pl-en-flores-dev", "mt-pl-en-newstest2020"),
            ),
        ),
        blocks={"table": block},
    ),
)
