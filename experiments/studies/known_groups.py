"""Validity by known groups: which metrics notice damage of a known kind in the human translation.

Every group replaces the human translation by another text, shown sentence by sentence so that all groups have the same
pace.  Each bundled guesser answers with its own buzzer.  A valid metric orders the groups as a reader would: the
intact text and a harmless change first, another question's text last.

    change   metric of the group minus that of the intact text, paired, with its interval over questions
    drop     share of the way from the intact text (0) to another question's text (1), comparable across metrics
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Ledger, Row, row_of
from experiments.lab.tables import number
from experiments.validity.damage import EACH, INTACT, OTHER, REPLACED, texts
from sqa import metrics as metric_names
from sqa.api.experiment import Entry, Experiment
from sqa.core.differences import compare_many
from sqa.core.significance import bootstrap_weights, percentiles, score_sums
from sqa.core.types import Floats
from sqa.data.datasets import load_questions
from sqa.files.atomic import write_text
from sqa.pipeline.paired import intervals
from sqa.report import plots
from sqa.results import markdown

DATASETS, SIZE = ("xqb-es", "xqb-pl"), 147
LIMITS = {"xqb-es": None, "xqb-pl": SIZE}  # the same number of questions of each set
GUESSERS: Mapping[str, tuple[Any, Mapping[str, str]]] = {  # name -> guesser, buzzer
    "rerank": ("rerank", {"name": "mlp", "model": "rerank-translated"}),
    "bm25": ("bm25", {"name": "mlp", "model": "bm25"}),
    "gru": ("gru", {"name": "mlp", "model": "gru"}),
    "bert": ({"name": "bert", "dtype": "int8"}, {"name": "mlp", "model": "bert"}),
}
BEST = "rerank"
TEXT, ANSWERS = ("bleu", "chrf", "facts"), ("ew", "accuracy")
MACHINES = {"phrase-based, full input": "pbmt", "small Transformer, full input": "waitk"}
GROUPS = (INTACT, *EACH, REPLACED, *MACHINES, OTHER)


def stats_of(dataset: str, runs: Path) -> dict[tuple[str, str], Mapping[str, Floats]]:
    """Return a dict that maps (group, guesser) to the statistics of each metric; missing runs are computed.

    The texts are written below `runs`.  The text metrics do not depend on the guesser, so they are computed only for
    the best guesser.
    """
    pair = f"{dataset.removeprefix('xqb-')}-en"
    translators: dict[str, Mapping[str, Any]] = {}
    for group, changed in texts(load_questions(dataset)).items():
        path = runs / "known-groups" / f"{dataset}-{slug(group)}.txt"
        write_text(path, "".join(" ".join(sentence) + "\n" for text in changed for sentence in text))
        translators[group] = {"name": "fixed", "text": str(path), "unit": "sentence"}
    for group, name in MACHINES.items():
        translators[group] = {"name": name, "model": f"pbmt-{pair}" if name == "pbmt" else pair, "k": "full"}
    answered = Experiment(
        [Entry(group, translators[group]) for group in GROUPS],
        {name: player for name, player in GUESSERS.items() if name != BEST},
        dataset=dataset,
        limit=LIMITS[dataset],
        metrics=ANSWERS,
        runs=runs,
        name_of=lambda cell: f"known-groups-{dataset}-{slug(cell.family)}-{cell.contestant}",
    )
    best = replace(answered, guessers={BEST: GUESSERS[BEST]}, metrics=(*ANSWERS, *TEXT))
    return {(r.translator, r.guesser): r.stats for r in (*best.run(), *answered.run())}


def slug(group: str) -> str:
    """Return a group's name with hyphens in place of other characters, for file names."""
    return re.sub(r"\W+", "-", group)


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield value, change and drop of every metric, group and guesser, and each group's share of changed sentences."""
    for dataset in DATASETS:
        stats = stats_of(dataset, runs)
        groups = texts(load_questions(dataset))
        for group in groups:
            texts_of = zip(groups[INTACT][:SIZE], groups[group][:SIZE], strict=True)
            changed = [a != b for intact, text in texts_of for a, b in zip(intact, text, strict=True)]
            yield Row(
                (dataset, "-", group, "-"), "sentences changed", float(np.mean(changed)), n=len(changed), unit="share"
            )
        for guesser in GUESSERS:
            for name in (*ANSWERS, *(TEXT if guesser == BEST else ())):
                yield from rows(dataset, guesser, name, {group: stats[group, guesser][name] for group in GROUPS})


def rows(dataset: str, guesser: str, name: str, tables: Mapping[str, Floats]) -> Iterator[Row]:
    """Yield the rows of one metric."""
    [metric] = metric_names.build([name])
    shown = "-" if name in TEXT else guesser
    for group, table in tables.items():
        cell = (dataset, shown, group)
        yield from intervals((*cell, "value"), [(metric, table)])
        if group != INTACT:
            [change] = compare_many([(table, tables[INTACT])], [metric])
            yield row_of((*cell, "change"), name, change, metric.unit, metric.signature())
            yield Row((*cell, "change"), f"{name} p", change.p, n=change.n, unit="p")
        if group not in (INTACT, OTHER):
            yield drop((*cell, "drop"), metric, tables[INTACT], table, tables[OTHER])


def drop(cell: tuple[str, ...], metric: Any, intact: Floats, group: Floats, other: Floats) -> Row:
    """Return the drop from the intact text as a share of the drop to another question's text, with its interval."""
    stats = [intact, group, other]
    scorers = [metric.score_many] * 3
    a, b, c = score_sums(stats, scorers, bootstrap_weights(len(intact), 1000, 0))
    x, y, z = (metric.score(table.sum(axis=0)) for table in stats)
    return Row(cell, metric.name, (x - y) / (x - z), *percentiles((a - b) / (a - c)), len(intact), "share")


# ------------------------------------------------------------------------------------------------ table and figure

SHOWN = (  # heading, guesser, metric
    ("BLEU", "-", "bleu"),
    ("chrF", "-", "chrf"),
    ("facts", "-", "facts"),
    ("accuracy, rerank", "rerank", "accuracy"),
    *((f"EW, {guesser}", guesser, "ew") for guesser in GUESSERS),
)


def block(ledger: Ledger, dataset: str) -> list[str]:
    """Return the table of a data set's drops without accuracy, with intervals for the best guesser only."""
    measured = {(row.cell[1], row.metric) for row in ledger.where(dataset=dataset, what="drop")}
    columns_shown = [column for column in SHOWN if column[1:] in measured and column[2] != "accuracy"]
    lines = []
    for group in dict.fromkeys(row.cell[2] for row in ledger.where(dataset=dataset, what="drop")):
        cell = {"dataset": dataset, "group": group, "what": "drop"}
        shown = [number(ledger.one(m, guesser=g, **cell), 2, g == BEST, sign=True) for _, g, m in columns_shown]
        lines.append([group, *shown])
    return markdown(["group", *(head for head, *_ in columns_shown)], lines)


def figure(ledger: Ledger) -> plots.Figure:
    """Draw the drop of every group, with a panel for each metric and a colour for each language."""
    groups = [group for group in GROUPS if group not in (INTACT, OTHER)]
    panels: dict[str, list[plots.Dot]] = {head: [] for head, *_ in SHOWN[:5]}
    for head, guesser, metric in SHOWN[:5]:
        for i, dataset in enumerate(DATASETS):
            for group in groups:
                row = ledger.one(metric, dataset=dataset, guesser=guesser, group=group, what="drop")
                label = {"xqb-es": "Spanish", "xqb-pl": "Polish"}[dataset]
                panels[head].append(plots.Dot(groups.index(group) + 0.25 * (i - 0.5), row, i, label))
    xlabel = "0: as the intact human translation; 1: as another question's text"
    return plots.forest(panels, groups, plots.PAGE, xlabel)


ITEMS = (
    Item(
        name="known-groups",
        shows="which metrics notice damage of a known kind in the human translation",
        config="",
        columns=("dataset", "guesser", "group", "what"),
        measure=measure,
        inputs=inputs_of(
            models=(
                *("es-en", "pl-en", "pbmt-es-en", "pbmt-pl-en", "bm25", "gru", "bert", "rerank"),
                *(f"buzzer-mlp-{buzzer['model']}" for _, buzzer in GUESSERS.values()),
            ),
            datasets=DATASETS,
        ),
        blocks={dataset: partial(block, dataset=dataset) for dataset in DATASETS},
        figures={"docs/known_groups.png": figure},
        kept="15 minutes on two cores",
    ),
)
