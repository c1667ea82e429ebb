"""Which metric knows which question is lost?  AUC per question for keeping an answer that the human translation gets.

Questions count whose answer the guesser has first once the whole human translation is read.  A system keeps the answer
if it is first at the end of its own translation, too.  AUC .5 is chance, 1 means that every question kept has a better
score than every question lost (Mann and Whitney 1947; ties count half).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

from experiments.items.over_k import BEST
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from sqa import metrics as metric_names
from sqa.core.arrays import Bools, Floats
from sqa.report import markdown

SCORES = ("bleu", "chrf", "names", "names@invented")
RESAMPLES = 1000
LEAST = 5  # questions kept, and lost, below which no AUC is given


def auc(score: Floats, kept: Bools) -> float:
    """Probability that a kept question has the better score; ties half.  One side empty: nan."""
    if kept.all() or not kept.any():
        return float("nan")
    u = mannwhitneyu(score[kept], score[~kept]).statistic
    return float(u / (kept.sum() * (~kept).sum()))


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """A row for each system and metric; then the mean over the systems of a data set, questions resampled together."""
    grid = [row for row in grid_rows.finished(config_path, runs) if row.cell.guesser == BEST]
    for dataset in dict.fromkeys(row.cell.dataset for row in grid):
        rows = [row for row in grid if row.cell.dataset == dataset]
        human = next(row for row in rows if row.cell.family == "reference" and row.cell.k == "full")
        known = human.stats["accuracy"][:, 0] > 0
        systems = [row for row in rows if row.cell.family != "reference"]
        yield from _dataset(dataset, systems, known)


def _dataset(dataset: str, systems, known: Bools) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    n = int(known.sum())
    draws = [rng.integers(0, n, n) for _ in range(RESAMPLES)]
    drawn: dict[str, list[Floats]] = {name: [] for name in SCORES}
    values: dict[str, list[float]] = {name: [] for name in SCORES}
    for metric in metric_names.build(SCORES):
        for row in systems:
            kept = row.stats["accuracy"][known, 0] > 0
            if metric.name not in row.stats or min(kept.sum(), (~kept).sum()) < LEAST:
                continue
            sign = 1 if metric.higher_is_better else -1
            score = np.nan_to_num(sign * metric.score_many(row.stats[metric.name][known]), nan=0.0)
            value, samples = auc(score, kept), np.array([auc(score[d], kept[d]) for d in draws])
            low, high = np.nanpercentile(samples, [2.5, 97.5])
            cell = (dataset, row.cell.translator, str(row.cell.k))
            yield Row(cell, metric.name, value, float(low), float(high), n, "AUC", metric.signature())
            values[metric.name].append(value)
            drawn[metric.name].append(samples)
    means = {name: np.nanmean(samples, axis=0) for name, samples in drawn.items() if samples}
    for name, samples in means.items():
        low, high = np.nanpercentile(samples, [2.5, 97.5])
        yield Row(
            (dataset, "mean of all systems", "all"),
            name,
            float(np.mean(values[name])),
            float(low),
            float(high),
            n,
            "AUC",
        )
    for name in SCORES[1:]:
        if name in means:
            gap = means[name] - means[SCORES[0]]
            low, high = np.nanpercentile(gap, [2.5, 97.5])
            value = float(np.mean(values[name]) - np.mean(values[SCORES[0]]))
            yield Row(
                (dataset, f"{name} minus {SCORES[0]}", "all"),
                "auc-difference",
                value,
                float(low),
                float(high),
                n,
                "AUC",
            )


def block(ledger: Ledger) -> list[str]:
    """The mean over all systems of a data set, by metric, and the differences from BLEU."""
    lines = []
    for dataset in ledger.values("dataset"):
        where = {"dataset": dataset, "translator": "mean of all systems"}
        for name in SCORES:
            row = ledger.one(name, **where)
            gap = ledger.one("auc-difference", dataset=dataset, translator=f"{name} minus {SCORES[0]}")
            if row is not None:
                lines.append([dataset, str(row.n), name, number(row, 2), number(gap, 2, sign=True) if gap else "-"])
    return markdown.table(["data set", "questions", "metric", "AUC, mean of all systems", f"minus {SCORES[0]}"], lines)


ITEM = Item(
    name="lost-questions",
    shows="which metric of texts knows which question is lost (AUC per question)",
    config="ablation.yaml",
    columns=("dataset", "translator", "k"),
    measure=measure,
    inputs=grid_rows.inputs,
    blocks={"table": block},
)
