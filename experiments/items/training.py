"""Translators trained several times: one model for every k or one for all, and the luck of a training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from experiments.ablation import seeds
from experiments.grid import CONTINUED, SEPARATE
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import DEVIATION
from smt.training.sweep import MULTI, finished
from sqa.report import plots

if TYPE_CHECKING:
    from sqa.report.plots import Figure

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
    return seeds.rows_of(grid_rows.finished(config, runs))


def spread(ledger: Ledger, dataset: str = "xqb-es", guesser: str = "bm25") -> Figure:
    """BLEU and expected wins over k, with a standard deviation over trainings to both sides."""
    panels = []
    for metric, title in (("bleu", "BLEU"), ("ew", "expected wins")):
        sd = {row.cell: row.value for row in ledger.where(metric + DEVIATION, dataset=dataset, guesser=guesser)}
        rows = [row for row in ledger.where(metric, dataset=dataset, guesser=guesser) if row.cell in sd]
        around = [replace(r, low=r.value - sd[r.cell], high=r.value + sd[r.cell]) for r in rows]
        panels.append(plots.Panel(title, plots.lines(around, 1, 2, ledger.values("translator"))))
    return plots.over_k([panels], "k (source words read first)", height=2.4)


ITEMS = (
    Item(
        "sweep-flores",
        "a model for each k beside one multi-path model, BLEU on development sentences",
        "sweep_es_en.yaml",
        ("language", "models", "k"),
        development,
        kept="42 trainings",
    ),
    Item(
        "sweep-xqb",
        "the same models by question answering",
        "studies.yaml:sweep",
        seeds.COLUMNS,
        answers,
        figures={"docs/sweep_xqb-es.png": spread},
        kept="42 trainings",
    ),
    Item(
        "seeds",
        "the Spanish language model trained three times: how much of a number is luck",
        "studies.yaml:seeds",
        seeds.COLUMNS,
        answers,
        kept="three trainings of a language model",
    ),
)
