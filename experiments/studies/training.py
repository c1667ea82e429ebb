"""Translators trained several times: one model per k or one model for all k, and the variance between training runs.

The study gives means and standard deviations over training runs, and differences between systems.  The interval of a
difference resamples questions and training runs together.  For a system that was trained once, it does not include the
variance between training runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

from experiments.grid import CONTINUED, SEPARATE, AblationConfig
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import DEVIATION, Column, pivot
from smt.training.sweep import MULTI, finished
from sqa import metrics as metric_names
from sqa.api.experiment import Result
from sqa.core.differences import compare_trainings
from sqa.core.significance import total
from sqa.pipeline.config import load
from sqa.report import plots

LANGUAGES = (("Spanish", "es-en"), ("Polish", "pl-en"))
SHIPPED = "wait-k"  # the bundled model, from which the training of these models started
SHOWN = ("bleu", "ew", "oracle-ew", "accuracy")
ANSWERS = (("bleu", "BLEU, XQB"), ("ew", "EW"), ("oracle-ew", "oracle EW"), ("accuracy", "accuracy"))
DEVELOPMENT, NO_GUESSER = "flores-dev", "-"  # data set and guesser of BLEU on development sentences
COLUMNS = ("dataset", "translator", "k", "guesser")
OVER_K = [
    Column("bleu", "BLEU, flores-dev", cell={"dataset": DEVELOPMENT}),
    *(Column(metric, head, cell={"dataset": "xqb-es", "guesser": "rerank"}) for metric, head in ANSWERS),
]

Key = tuple[str, str, int | str, str]  # data set, family, k, guesser
Groups = Mapping[Key, Sequence[Result]]
Pair = tuple[tuple[str, ...], Sequence[Result], Sequence[Result], bool]  # cell, runs a and b, whether models are shared


def development(_: Path, runs: Path) -> Iterator[Row]:
    """Yield BLEU of the sweeps' models on development sentences: mean and standard deviation over seeds."""
    for language, pair in LANGUAGES:
        for cell, values in development_bleu(runs, f"sweep-{pair}").items():
            yield from _spread_over((language, *cell), "bleu", values, "0-100")


def development_bleu(runs: Path, name: str) -> Mapping[tuple[str, str], Sequence[float]]:
    """Return a dict that maps (family, k) to the BLEU of each seed's model on development sentences."""
    scores: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for run in finished(runs / "smt" / name):
        for k, bleu in run.bleu.items():
            scores[CONTINUED if run.k == MULTI else SEPARATE, str(k)].append(bleu)
    return scores


def scratch(config: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of models trained from random weights: BLEU on development sentences, then those of `answers`."""
    [name] = load(config, AblationConfig).sweeps.values()
    for cell, values in development_bleu(runs, name).items():
        yield from _spread_over((DEVELOPMENT, *cell, NO_GUESSER), "bleu", values, "0-100")
    yield from answers(config, runs)


def _spread_over(cell: tuple[str, ...], metric: str, values: Sequence[float], unit: str) -> Iterator[Row]:
    """Yield the mean over training runs, and their standard deviation (n - 1) if there are several."""
    yield Row(cell, metric, fmean(values), n=len(values), unit=unit)
    if len(values) > 1:
        yield Row(cell, metric + DEVIATION, stdev(values), n=len(values), unit=unit)


def answers(config: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of `rows_of` for a grid's config; missing runs are computed."""
    return rows_of(grid_rows.finished(config, runs), load(config, AblationConfig).resamples)


def rows_of(grid: Sequence[Result], resamples: int) -> Iterator[Row]:
    """Yield the mean and standard deviation of each metric over training runs, and differences.

    The differences are largest minus smallest k, and separate models minus the multi-path or shipped model.  The
    shipped model counts as one training run.
    """
    groups: defaultdict[Key, list[Result]] = defaultdict(list)
    for row in grid:
        if row.cell.seed is not None or row.cell.family == SHIPPED:
            groups[row.cell.dataset, row.cell.family, row.cell.k, row.cell.contestant].append(row)
    metrics = metric_names.build(SHOWN)
    for (dataset, family, k, guesser), trainings in groups.items():
        for metric in (metric for metric in metrics if all(metric.name in row.stats for row in trainings)):
            values = [total(row.stats[metric.name], metric) for row in trainings]
            yield from _spread_over((dataset, family, str(k), guesser), metric.name, values, metric.unit)
    for metric in metrics:
        tables = {key: rows for key, rows in groups.items() if all(metric.name in row.stats for row in rows)}
        for where, a, b, same in (*trends(tables), *models(tables)):
            first, second = ([row.stats[metric.name] for row in rows] for rows in (a, b))
            i = compare_trainings(first, second, metric, resamples, same)
            yield Row(where, metric.name, i.value, i.low, i.high, unit=metric.unit)


def trends(groups: Groups) -> Iterator[Pair]:
    """Yield the runs at the largest and smallest k of each translator with several training runs, matched by seed."""
    ladders: defaultdict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for key, trainings in groups.items():
        if len(trainings) > 1:
            ladders[key[0], key[1], key[3]].append(key)
    for (dataset, family, guesser), keys in ladders.items():
        smallest, largest = (pick(keys, key=lambda key: plots.order(key[2])) for pick in (min, max))
        below, above = ({row.cell.seed: row for row in groups[key]} for key in (smallest, largest))
        seeds = [seed for seed in above if seed in below]
        if smallest != largest and seeds:
            high, low = ([rows[seed] for seed in seeds] for rows in (above, below))
            yield (dataset, family, f"{largest[2]} minus {smallest[2]}", guesser), high, low, family != SEPARATE


def models(groups: Groups) -> Iterator[Pair]:
    """Yield the runs of separate models paired with the runs of multi-path or shipped models at the same k."""
    for other in (CONTINUED, SHIPPED):
        for (dataset, family, k, guesser), separate in groups.items():
            if family == SEPARATE and (others := groups.get((dataset, other, k, guesser))):
                yield (dataset, f"{SEPARATE} minus {other}", str(k), guesser), separate, others, False


def spread(ledger: Ledger) -> plots.Figure:
    """Draw BLEU and expected wins over k in Spanish, with one standard deviation over training runs."""
    panels, where = [], {"dataset": "xqb-es", "guesser": "bm25"}
    for metric, title in (("bleu", "BLEU"), ("ew", "expected wins")):
        sd = {row.cell: row.value for row in ledger.where(metric + DEVIATION, **where)}
        rows = [row for row in ledger.where(metric, **where) if row.cell in sd]
        around = [replace(r, low=r.value - sd[r.cell], high=r.value + sd[r.cell]) for r in rows]
        panels.append(plots.Panel(title, plots.lines(around, "translator", "k", ledger.values("translator"))))
    return plots.over_k([panels], "k (source words read first)", height=2.4)


ITEMS = (
    Item(
        "sweep-flores",
        "a model for each k, and one multi-path model: BLEU on development sentences",
        "sweep_es_en.yaml",
        ("language", "models", "k"),
        development,
        kept="42 training runs",
    ),
    Item(
        "sweep-xqb",
        "the same models by question answering",
        "studies.yaml:sweep",
        COLUMNS,
        answers,
        figures={"docs/sweep_xqb-es.png": spread},
        kept="42 training runs",
    ),
    Item(
        "scratch",
        "Spanish models trained from random weights without Quizbowl text, one for each k, three times",
        "studies.yaml:scratch",
        COLUMNS,
        scratch,
        blocks={"table": pivot(("k",), OVER_K, translator=SEPARATE, k=("1", "3", "full"))},
        kept="nine training runs, on a GPU",
    ),
    Item(
        "seeds",
        "the Spanish language model trained three times: variation between training runs",
        "studies.yaml:seeds",
        COLUMNS,
        answers,
        kept="three training runs of a language model",
    ),
)
