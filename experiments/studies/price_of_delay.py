"""Ratings of delay by listeners: Continuous Rating of simultaneous speech translation at equal quality of the text.

At IWSLT 2022, people watched talks with German subtitles and rated them from 1 to 4 as they listened.  Each of five
systems ran in three regimes of latency, with an average lagging of at most 1, 2 and 4 s.  The fit

    rating = a * regime + b * quality + annotator + document

has the regimes 0, 1, 2.  So `a` is the change of the rating with the next regime: positive if people prefer more delay
at equal quality.  Its interval resamples annotators.  Its two-sided p exchanges the regimes of each system, so it knows
that there are only 15 versions.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Row
from experiments.results_book.tables import Column, pivot
from sqa.core import Floats, percentiles
from sqa.data import download
from sqa.files import records

DATA, REGIMES, RESAMPLES = "continuous-rating-docs", ("low", "medium", "high"), 500
CONTROLS: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "COMET": ("comet",),
    "BERTScore": ("bertscore",),
    "chrF": ("chrf",),
    "COMET and system": ("comet", "system"),
}
Ratings = Sequence[Mapping[str, str]]


def design(rated: Ratings, names: Sequence[str]) -> Floats:
    """Return the columns of a fit (n, d): numbers as they are, and a column of 0 and 1 for each other value."""
    columns = []
    for name in names:
        values = [row[name] for row in rated]
        if name in ("annotator", "doc", "system"):
            columns += [[float(value == each) for value in values] for each in sorted({*values})]
        else:
            columns.append([float(value) for value in values])
    return np.array([[1.0] * len(rated), *columns]).T


def slopes(regimes: Floats, ratings: Floats, controls: Floats, weights: Floats) -> Floats:
    """Return the coefficient of each vector of regimes (m, n) beside the controls (n, d), by weighted least squares."""
    root = np.sqrt(weights)
    base, sizes, _ = np.linalg.svd(controls * root[:, None], full_matrices=False)
    base = base[:, sizes > 1e-9 * sizes[0]]
    moved, rating = regimes * root, ratings * root
    moved = moved - moved @ base @ base.T
    return np.asarray(moved @ rating / (moved**2).sum(axis=1))


def p_of(regimes: Floats, exchanged: Floats, ratings: Floats, controls: Floats) -> float:
    """Return the two-sided p-value of the change with the regime, from the regimes exchanged by chance (m, n)."""
    value, *null = slopes(np.stack([regimes, *exchanged]), ratings, controls, np.ones(len(ratings)))
    return float((1 + (np.abs(null) >= abs(value) - 1e-12).sum()) / (1 + len(null)))


def measure(_: Path, __: Path) -> Iterator[Row]:
    """Yield the change of the rating with the regime for each set of controls."""
    rated = [row for row in csv.DictReader(records.lines(download.path_of(DATA))) if row["latency"]]
    regimes = np.array([float(REGIMES.index(row["latency"])) for row in rated])
    ratings = np.array([float(row["CR"]) for row in rated])
    annotators, of = np.unique([row["annotator"] for row in rated], return_inverse=True)
    systems, ran = np.unique([row["system"] for row in rated], return_inverse=True)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(annotators), np.full(len(annotators), 1 / len(annotators)), RESAMPLES)[:, of]
    orders = rng.permuted(np.tile(np.arange(len(REGIMES)), (RESAMPLES, len(systems), 1)), axis=2)
    exchanged = orders[:, ran, regimes.astype(int)].astype(float)
    for name, controls in CONTROLS.items():
        table = design(rated, (*controls, "annotator", "doc"))
        [value] = slopes(regimes[None], ratings, table, np.ones(len(rated)))
        samples = np.array([slopes(regimes[None], ratings, table, each)[0] for each in drawn])
        yield Row((name,), "change", float(value), *percentiles(samples), len(rated), "rating")
        p = p_of(regimes, exchanged, ratings, table)
        yield Row((name,), "p", p, n=len(systems) * len(REGIMES), unit="0-1")


SHOWN = {"table": pivot(("control",), [Column("change", "change with the next regime", sign=True), Column("p", "p")])}
ABOUT = "ratings of simultaneous translation by people, by latency at equal quality"
ITEMS = (Item("price-of-delay", ABOUT, "", ("control",), measure, inputs_of(datasets=(DATA,)), SHOWN),)
