"""Metrics as predictors of lost questions, and their agreement with answer metrics in the ranking of systems.

A question counts if the guesser ranks its answer first after the whole human translation.  A system keeps the
question if the answer is also first at the end of the system's translation, and loses it otherwise.  A metric is
judged by the AUC of its values per question.  An AUC of .5 is chance level; at 1 every kept question has a better
value than every lost question (Mann and Whitney 1947; ties count half).  The metrics of Figure 9 are included if they
are installed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from experiments.ablation import correlation
from experiments.grid import AblationConfig
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from experiments.paper import figure9
from experiments.paper.figure3 import BEST
from sqa import metrics as metric_names
from sqa.core.significance import percentiles
from sqa.core.types import Bools, Floats
from sqa.pipeline import paired
from sqa.pipeline.config import load
from sqa.results import markdown

OF_TRACES = ("facts", "facts@invented")  # not among the ablation's metrics; computed here from the translations
SCORES = ("bleu", "chrf", "names", "names@invented", *OF_TRACES)
RESAMPLES = 1000
MEAN = "mean of all systems"
LEAST = 5  # minimum number of kept and of lost questions for an AUC


def auc(score: Floats, kept: Bools) -> float:
    """Return the probability that a kept question has a better score than a lost question; ties count half.

    Questions without a score (for example, without a name in the reference) are ignored.  Returns nan if no kept or no
    lost question remains.
    """
    defined = ~np.isnan(score)
    score, kept = score[defined], kept[defined]
    if kept.all() or not kept.any():
        return float("nan")
    u = mannwhitneyu(score[kept], score[~kept]).statistic
    return float(u / (kept.sum() * (~kept).sum()))


System = tuple[tuple[str, str, str], Mapping[str, Floats]]  # data set, translator, k; metric -> (n, d)


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield a row for each system and metric, then the mean over the systems of a data set."""
    config = load(config_path, figure9.Figure9Config)
    ablation = config_path.parent / config.ablation
    grid = grid_rows.finished(ablation, runs, lambda cell: cell.contestant == BEST)
    metrics: dict[str, Any] = {metric.name: metric for metric in metric_names.build(SCORES)}
    scored: dict[tuple[str, str, int | str], dict[str, Floats]] = {}
    for result in figure9.measure(config, load(ablation, AblationConfig), runs):
        stats, traces = result.stats, result.run.traces
        names = [entry.name for entry in config.quality if entry.name in stats]
        metrics |= {m.name: m for m in paired.metrics_of(names, result.saved)}
        facts = {name: metric_names.collect(traces, metrics[name]) for name in OF_TRACES}
        at = result.dataset, result.cell.family, result.cell.k
        scored[at] = facts | {name: stats[name] for name in metrics if name in stats}
    for dataset in dict.fromkeys(row.cell.dataset for row in grid):
        rows = [row for row in grid if row.cell.dataset == dataset]
        human = next(row for row in rows if row.cell.family == "reference" and row.cell.k == "full")
        answerable = human.stats["accuracy"][:, 0] > 0
        systems = [
            ((dataset, cell.translator, str(cell.k)), {**scored.get((dataset, cell.family, cell.k), {}), **row.stats})
            for row in rows
            if (cell := row.cell).family != "reference"
        ]
        yield from _dataset(dataset, systems, answerable, metrics)


def _dataset(dataset: str, systems: Sequence[System], answerable: Bools, metrics: Mapping[str, Any]) -> Iterator[Row]:
    rng, n = np.random.default_rng(0), int(answerable.sum())
    draws = [np.arange(n), *(rng.integers(0, n, n) for _ in range(RESAMPLES))]
    means: dict[str, Floats] = {}  # means over the systems, for the questions and for each resample
    for name, metric in metrics.items():
        aucs = []
        for cell, stats in systems:
            kept = stats["accuracy"][answerable, 0] > 0
            if name not in stats or min(kept.sum(), (~kept).sum()) < LEAST:
                continue
            sign = 1 if metric.higher_is_better else -1
            score = sign * metric.score_many(stats[name][answerable])
            aucs.append(np.array([auc(score[draw], kept[draw]) for draw in draws]))
            yield _row(cell, name, aucs[-1], n)
        if aucs:
            means[name] = np.nanmean(aucs, axis=0)
            yield _row((dataset, MEAN, "all"), name, means[name], n)
    for name in means:
        if name != SCORES[0]:
            gap = means[name] - means[SCORES[0]]
            yield _row((dataset, f"{name} minus {SCORES[0]}", "all"), "auc-difference", gap, n)


def _row(cell: tuple[str, str, str], metric: str, values: Floats, n: int) -> Row:
    """Return a row with the first of `values`, and with the percentile interval of the others, which are resamples."""
    return Row(cell, metric, float(values[0]), *percentiles(values[1:]), n, "AUC")


def block(ledger: Ledger) -> list[str]:
    """Return a Markdown table with each metric's mean AUC over the systems of a data set, and its gap to BLEU."""
    lines = []
    for dataset in ledger.values("dataset"):
        where = {"dataset": dataset, "translator": MEAN}
        for name in (row.metric for row in ledger.where(**where) if not row.metric.endswith("@invented")):
            row = ledger.one(name, **where)
            gap = ledger.one("auc-difference", dataset=dataset, translator=f"{name} minus {SCORES[0]}")
            if row is not None:
                lines.append([dataset, str(row.n), name, number(row, 2), number(gap, 2, sign=True) if gap else "-"])
    return markdown(["data set", "questions", "metric", "AUC, mean of all systems", f"minus {SCORES[0]}"], lines)


def agreement(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield Kendall's tau between each answer metric and each quality or lag metric, over the systems."""
    for group, taus in correlation.ranked(config_path, runs)[1].items():
        for tau in taus:
            if tau.tau is not None and not metric_names.is_variant(tau.b):
                yield Row((*group, tau.b, tau.a), "tau", tau.tau, tau.low, tau.high, tau.n, "tau")


ITEMS = (
    Item(
        name="lost-questions",
        shows="how well each text metric predicts lost questions (AUC per question)",
        config="figure9.yaml",
        columns=("dataset", "translator", "k"),
        measure=measure,
        inputs=grid_rows.inputs_beside,
        blocks={"table": block},
    ),
    Item(
        name="correlation",
        shows="agreement of quality and lag with answers on the ranking of systems (Kendall's tau)",
        config="correlation.yaml",
        columns=("dataset", "contestant", "by", "with"),
        measure=agreement,
        inputs=grid_rows.inputs_beside,
    ),
)
