"""Which metric knows which question is lost?  AUC per question for keeping an answer that the human translation gets.

Questions count whose answer the guesser has first once the whole human translation is read.  A system keeps the answer
if it is first at the end of its own translation, too.  AUC .5 is chance, 1 means that every question kept has a better
score than every question lost (Mann and Whitney 1947; ties count half).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

from experiments.grid import Row as GridRow
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
MEAN = "mean of all systems"
LEAST = 5  # questions kept, and lost, below which no AUC is given


def auc(score: Floats, kept: Bools) -> float:
    """Probability that a kept question has the better score; ties half.  One side empty: nan.

    Questions without a score (no name in the reference) are left out.
    """
    there = ~np.isnan(score)
    score, kept = score[there], kept[there]
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
        yield from _dataset(dataset, [row for row in rows if row.cell.family != "reference"], known)


def _dataset(dataset: str, systems: Sequence[GridRow], known: Bools) -> Iterator[Row]:
    rng, n = np.random.default_rng(0), int(known.sum())
    draws = [np.arange(n), *(rng.integers(0, n, n) for _ in range(RESAMPLES))]
    means: dict[str, Floats] = {}  # over the systems, of the questions and of each resample
    for metric in metric_names.build(SCORES):
        found = []
        for row in systems:
            kept = row.stats["accuracy"][known, 0] > 0
            if metric.name not in row.stats or min(kept.sum(), (~kept).sum()) < LEAST:
                continue
            sign = 1 if metric.higher_is_better else -1
            score = sign * metric.score_many(row.stats[metric.name][known])
            found.append(np.array([auc(score[draw], kept[draw]) for draw in draws]))
            yield _row((dataset, row.cell.translator, str(row.cell.k)), metric.name, found[-1], n)
        if found:
            means[metric.name] = np.nanmean(found, axis=0)
            yield _row((dataset, MEAN, "all"), metric.name, means[metric.name], n)
    for name in SCORES[1:]:
        if name in means:
            gap = means[name] - means[SCORES[0]]
            yield _row((dataset, f"{name} minus {SCORES[0]}", "all"), "auc-difference", gap, n)


def _row(cell: tuple[str, str, str], metric: str, found: Floats, n: int) -> Row:
    """`found`: the value, then those of the resamples."""
    low, high = np.nanpercentile(found[1:], [2.5, 97.5])
    return Row(cell, metric, float(found[0]), float(low), float(high), n, "AUC")


def block(ledger: Ledger) -> list[str]:
    """The mean over all systems of a data set, by metric, and the differences from BLEU."""
    lines = []
    for dataset in ledger.values("dataset"):
        where = {"dataset": dataset, "translator": MEAN}
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
