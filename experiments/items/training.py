"""Translators trained several times: one model for every k or one for all, and the luck of a training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from experiments.ablation import seeds
from experiments.grid import CONTINUED, SEPARATE
from experiments.lab import curves, grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import DEVIATION, Column, pivot
from smt.training.sweep import MULTI, finished
from sqa import metrics as metric_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KS = ("3", "6", "9", "12", "15", "full")
LANGUAGES = (("Spanish", "es-en"), ("Polish", "pl-en"))


def development(_: Path, runs: Path) -> Iterator[Row]:
    """BLEU of a sweep's models on its development sentences: mean and deviation over seeds."""
    for language, pair in LANGUAGES:
        scores: dict[tuple[str, str], list[float]] = {}
        for run in finished(runs / "smt" / f"sweep-{pair}"):
            models = CONTINUED if run.k == MULTI else SEPARATE
            for k, bleu in run.bleu.items():
                scores.setdefault((models, str(k)), []).append(bleu)
        for cell, values in scores.items():
            yield Row((language, *cell), "bleu", fmean(values), n=len(values), unit="0-100")
            yield Row((language, *cell), "bleu" + DEVIATION, stdev(values), n=len(values), unit="0-100")


def answers(config: Path, runs: Path) -> Iterator[Row]:
    """Means and deviations over trainings by question answering, and the largest k minus the smallest."""
    groups = grid_rows.finished(config, runs)
    units = {metric.name: metric.unit for metric in metric_names.build(seeds.SHOWN)}
    for (dataset, family, k, guesser), values in seeds.over_seeds(groups).items():
        for name in seeds.SHOWN:
            over, cell = values[name], (dataset, family, str(k), guesser)
            yield Row(cell, name, over.mean, n=over.n, unit=units[name])
            if over.deviation is not None:
                yield Row(cell, name + DEVIATION, over.deviation, n=over.n, unit=units[name])
    for name, found in ((name, seeds.trends(seeds.groups_of(groups), name)) for name in seeds.SHOWN):
        for (least, most), gap in found.items():
            cell = (most[0], most[1], f"{most[2]} minus {least[2]}", most[3])
            yield Row(cell, name, gap.value, gap.low, gap.high, unit=units[name])


def spread(ledger: Ledger, dataset: str = "xqb-es", guesser: str = "bm25") -> Figure:
    """BLEU and expected wins over k, with a standard deviation over trainings to both sides."""
    panels = []
    for metric, title in (("bleu", "BLEU"), ("ew", "expected wins")):
        lines = []
        for look, translator in enumerate(ledger.values("translator")):
            cell = {"dataset": dataset, "guesser": guesser, "translator": translator}
            sd = {row.cell[2]: row.value for row in ledger.where(metric + DEVIATION, **cell)}
            rows = {row.cell[2]: row for row in ledger.where(metric, **cell) if row.cell[2] in sd}
            around = {k: replace(r, low=r.value - sd[k], high=r.value + sd[k]) for k, r in rows.items()}
            lines.append(curves.Line(translator, look, around))
        panels.append(curves.Panel(title, lines))
    return curves.over_k([panels], "k (source words read first)", height=2.4)


def _ladder(metric: str, dataset: str, guesser: str = "bm25") -> list[Column]:
    return [Column(metric, f"k = {k}", cell={"k": k, "dataset": dataset, "guesser": guesser}) for k in KS]


COLUMNS = ("dataset", "translator", "k", "guesser")
ITEMS = (
    Item(
        "sweep-flores",
        "a model for each k beside one multi-path model, BLEU on development sentences",
        "sweep_es_en.yaml",
        ("language", "models", "k"),
        development,
        blocks={"table": pivot(("language", "models"), [Column("bleu", f"k = {k}", 2, cell={"k": k}) for k in KS])},
        kept="42 trainings",
    ),
    Item(
        "sweep-xqb",
        "the same models by question answering",
        "studies.yaml:sweep",
        COLUMNS,
        answers,
        blocks={
            f"{metric} {dataset}": pivot(("translator",), _ladder(metric, dataset), (f"{label}, {dataset}",))
            for (metric, label), dataset in product((("bleu", "BLEU"), ("ew", "EW, BM25")), ("xqb-es", "xqb-pl"))
        },
        figures={"docs/sweep_xqb-es.png": spread},
        kept="42 trainings",
    ),
    Item(
        "seeds",
        "the Spanish language model trained three times: how much of a number is luck",
        "studies.yaml:seeds",
        COLUMNS,
        answers,
        blocks={
            guesser: pivot(
                ("k",),
                [Column("bleu", "BLEU"), *(Column(m, h) for m, h in (("ew", "EW"), ("oracle-ew", "oracle EW"),
                                                                     ("accuracy", "accuracy")))],
                (f"k, {guesser}",),
                guesser=guesser,
            )
            for guesser in ("rerank", "bm25")
        },
        kept="three trainings of a language model",
    ),
)  # fmt: skip
