"""How much EW depends on the translator's training seed, the buzzer and the curve, compared with the questions.

training   standard deviation of EW between training runs of one system on the same questions, pooled over k from the
           ledgers `seeds`, `sweep-xqb` and `scratch`.  A k whose standard deviation is 0 is left out.  The interval
           assumes normal values.
buzzer     variance components of EW over the kinds of bundled buzzers, two guessers and questions, as in
           generalisability.py, and the standard deviation of one guesser's EW between kinds of buzzers: the square
           root of the sum of the components "buzzer" and "buzzer x guesser".  The translations are by the small
           Transformer at k = 3.  Intervals are percentiles over resampled questions.
curve      standard deviation of EW between the two published curves, for the same text, BM25 and the MLP buzzer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import chi2

from experiments.grid import SEPARATE
from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import DIGITS, Ledger, Row
from experiments.lab.pages import ledger_of, ledger_path
from experiments.lab.tables import DEVIATION, number
from experiments.studies.buzzers import BUZZERS
from experiments.validity.generalisability import NAMES, RESAMPLES, components, with_interval
from experiments.validity.limits import ARM
from sqa.api.experiment import Experiment
from sqa.core.types import Floats
from sqa.files.atomic import file_digest
from sqa.results import markdown

DATASETS, GUESSERS, K = ("xqb-es", "xqb-pl"), ("bm25", "gru"), 3
TRAININGS = ("seeds", "sweep-xqb", "scratch")  # ledgers
CURVES = ("ew", "ew@xqb-interface")
LANGUAGE_MODEL = "language model"
FOR_EACH_K = ("a model for each k", SEPARATE)  # systems with separate training runs for every k
LIMITS = {"xqb-es": None, "xqb-pl": 147}  # as in the item `generalisability`
COMPONENTS = tuple(name.replace("system", "buzzer") for name in NAMES)


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of training runs, buzzers and curves; missing runs of the buzzers are computed."""
    for dataset in DATASETS:
        groups: dict[tuple[str, str], list[Row]] = {}
        for item in TRAININGS:
            for row in ledger_of(item).where("ew" + DEVIATION, dataset=dataset):
                if row.value:
                    groups.setdefault((row.cell[1], row.cell[3]), []).append(row)
        for (translator, guesser), over_k in groups.items():
            system = "from random weights" if translator == SEPARATE else translator
            yield pooled((dataset, "training", f"{system}, {guesser}"), over_k, translator not in FOR_EACH_K)
        tables = played(dataset, runs)
        yield from rows(dataset, tables[0])
        yield between_curves(dataset, tables[:, BUZZERS.index("mlp"), 0])


def pooled(cell: tuple[str, str, str], over_k: Sequence[Row], shared: bool) -> Row:
    """Return the root mean square over k of the standard deviations between training runs, with a chi-square interval.

    The row's n is the number of training runs.  `shared` tells whether the same training runs are used at every k.
    """
    groups = 1 if shared else len(over_k)
    trainings = over_k[0].n * groups
    value = float(np.sqrt(np.mean([row.value**2 for row in over_k])))
    degrees = trainings - groups
    low, high = (value * float(np.sqrt(degrees / chi2.ppf(p, degrees))) for p in (0.975, 0.025))
    return Row(cell, "sd", value, low, high, trainings)


def between_curves(dataset: str, x: Floats) -> Row:
    """Return the standard deviation of EW between curves; x has shape (curves, questions)."""
    n, rng = x.shape[1], np.random.default_rng(0)
    drawn = [float(x[:, rng.integers(n, size=n)].mean(axis=1).std(ddof=1)) for _ in range(RESAMPLES)]
    cell = (dataset, "curve", "small Transformer, k = 3, bm25")
    return with_interval(cell, "sd", float(x.mean(axis=1).std(ddof=1)), drawn, n)


def played(dataset: str, runs: Path) -> Floats:
    """Return the EW of the small Transformer's translations, of shape (curves, buzzers, guessers, questions)."""
    players = {
        f"{guesser}, {kind}": ({"name": guesser}, {"name": kind, "model": guesser})
        for kind in BUZZERS
        for guesser in GUESSERS
    }
    found = Experiment(
        [{"name": "waitk", "model": f"{dataset.removeprefix('xqb-')}-en", "k": K}],
        players,
        dataset=dataset,
        limit=LIMITS[dataset],
        metrics=CURVES,
        name="seeds-and-buzzers",
        runs=runs,
    ).run()
    tables = {(result.guesser, curve): result.stats[curve] for result in found for curve in CURVES}
    wins = {key: table[:, 0] / table[:, 1] for key, table in tables.items()}
    return np.array(
        [[[wins[f"{guesser}, {kind}", curve] for guesser in GUESSERS] for kind in BUZZERS] for curve in CURVES]
    )


def rows(dataset: str, x: Floats) -> Iterator[Row]:
    """Yield EW, variance components and the standard deviation between buzzers; x is (buzzers, guessers, questions)."""
    n, rng = x.shape[2], np.random.default_rng(0)
    draws = [rng.integers(n, size=n) for _ in range(RESAMPLES)]
    for i, kind in enumerate(BUZZERS):
        for j, guesser in enumerate(GUESSERS):
            means = [float(x[i, j, draw].mean()) for draw in draws]
            yield with_interval((dataset, kind, guesser), "ew", float(x[i, j].mean()), means, n)
    observed, drawn = components(x), [components(x[:, :, draw]) for draw in draws]
    for index, name in enumerate(COMPONENTS):
        yield with_interval((dataset, "component", name), "variance", observed[index], [v[index] for v in drawn], n)
    sd = [float(np.sqrt(v[0] + v[3])) for v in (observed, *drawn)]  # buzzer, buzzer x guesser
    yield with_interval((dataset, "buzzer", "small Transformer, k = 3"), "sd", sd[0], sd[1:], n)


def block(ledger: Ledger) -> list[str]:
    """Return a Markdown table of standard deviations of EW, each next to a standard error over questions."""
    lines = []
    for row in (row for row in ledger.rows if row.metric == "sd"):
        dataset, varies, system = row.cell
        if system.startswith(LANGUAGE_MODEL):  # the bundled model with the same guesser
            at = {"translator": LANGUAGE_MODEL, "k": str(K), "contestant": system.rpartition(", ")[2]}
            ew = ledger_of("over-k").one("ew", dataset=dataset, **at)
        else:
            ew = ledger.one("ew", dataset=dataset, what="mlp", of="bm25")
        assert ew is not None and ew.low is not None and ew.high is not None
        number_of = {"buzzer": f"{len(BUZZERS)} kinds", "curve": str(len(CURVES))}.get(varies, str(row.n))
        lines.append([dataset, varies, system, number_of, number(row), f"{(ew.high - ew.low) / (2 * ARM):.3f}"])
    return markdown(("data set", "varies", "system", "number", "SD of EW", "standard error over questions"), lines)


def inputs(config: Path) -> dict[str, str]:
    """Return the digests of the models, the data sets, and the ledgers in TRAININGS."""
    buzzers = (f"buzzer-{kind}-{guesser}" for kind in BUZZERS for guesser in GUESSERS)
    files = {f"ledger {item}": file_digest(ledger_path(item))[:DIGITS] for item in TRAININGS}
    return {**inputs_of(("es-en", "pl-en", *GUESSERS, *buzzers), DATASETS)(config), **files}


ITEMS = (
    Item(
        name="seeds-and-buzzers",
        shows="how much expected wins vary with the training seed, the buzzer and the curve",
        config="",
        columns=("dataset", "what", "of"),
        measure=measure,
        inputs=inputs,
        blocks={"table": block},
        kept="needs runs of the small Transformers, minutes",
    ),
)
