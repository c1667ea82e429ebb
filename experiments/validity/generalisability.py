"""Generalisability of expected wins over questions and guessers: variance components and sample sizes.

The design is fully crossed with one value x[s, g, q] for each system, guesser and question (Brennan 2001).  The
systems are the texts of the item `known-groups`, except another question's text.  The variance components are those of
the random-effects analysis of variance; negative estimates become 0.

    error          standard error of one system's EW due to questions, and due to questions and guessers
    reliability    between two samples of n questions read by the same m guessers:
                   (v_s + v_sg / m) / (v_s + v_sg / m + (v_sq + v_sgq / m) / n)
    tau            Kendall's tau between the rankings of the two samples, 2 / pi * arcsin(reliability) for normal scores
    questions      the n at which tau is TAU, for m guessers

Intervals are percentiles over resampled questions.  They do not cover the choice of the few systems and guessers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import columns, number, pivot
from experiments.studies import known_groups
from experiments.studies.known_groups import DATASETS, GROUPS, GUESSERS
from experiments.validity.damage import OTHER
from sqa.core.significance import percentiles
from sqa.core.types import Floats
from sqa.results import markdown

EFFECTS = ("s", "g", "q", "sg", "sq", "gq", "sgq")
NAMES = ("system", "guesser", "question", "system x guesser", "system x question", "guesser x question", "rest")
TAU, MOST = 0.9, (1, 2, 3, 6)  # MOST: numbers of guessers
RESAMPLES, SPLITS = 1000, 500


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of each data set; the runs are those of the item `known-groups`."""
    for dataset in DATASETS:
        stats = known_groups.stats_of(dataset, runs)
        systems = [group for group in GROUPS if group != OTHER]
        stacked = np.array([[stats[system, guesser]["ew"] for guesser in GUESSERS] for system in systems])
        yield from rows(dataset, stacked[..., 0] / stacked[..., 1])


def rows(dataset: str, x: Floats) -> Iterator[Row]:
    """Yield the rows of a data set; x has shape (systems, guessers, questions)."""
    n, rng = x.shape[2], np.random.default_rng(0)
    drawn = [components(x[:, :, rng.integers(n, size=n)]) for _ in range(RESAMPLES)]
    observed = components(x)
    for index, name in enumerate(NAMES):
        yield with_interval((dataset, name), "variance", observed[index], [v[index] for v in drawn], n)
    for name, guessers_too in (("questions", False), ("questions and guessers", True)):
        values = [error(v, len(GUESSERS), n, guessers_too) for v in (observed, *drawn)]
        yield with_interval((dataset, name), "error", values[0], values[1:], n)
    for m in MOST:
        values = [questions_for(v, m) for v in (observed, *drawn)]
        yield with_interval((dataset, f"{m} guessers"), "questions", values[0], values[1:], n)
    taus = splits(x, rng)
    yield Row((dataset, "halves"), "tau", float(np.mean(taus)), *percentiles(np.array(taus)), n // 2)
    expected = [tau(reliability(v, len(GUESSERS), n // 2)) for v in (observed, *drawn)]
    yield with_interval((dataset, "halves"), "tau by the components", expected[0], expected[1:], n // 2)


def components(x: Floats) -> Floats:
    """Return the variance components (7,) of x (systems, guessers, questions), in the order of EFFECTS."""
    sizes = dict(zip("sgq", x.shape, strict=True))
    squares: dict[str, float] = {}
    for effect in EFFECTS:
        part = np.zeros_like(x)
        for size in range(len(effect) + 1):  # the effect's mean minus the means of its parts
            for kept in combinations(effect, size):
                others = tuple("sgq".index(c) for c in "sgq" if c not in kept)
                part = part + (-1) ** (len(effect) - size) * x.mean(axis=others, keepdims=True)
        degrees = np.prod([sizes[c] - 1 for c in effect])
        squares[effect] = float((part**2).sum() / degrees)
    variances: dict[str, float] = {"sgq": squares["sgq"]}
    for pair in ("sg", "sq", "gq"):
        [other] = set("sgq") - set(pair)
        variances[pair] = (squares[pair] - squares["sgq"]) / sizes[other]
    for one in "sgq":
        pairs = [pair for pair in ("sg", "sq", "gq") if one in pair]
        rest = squares[one] - sum(squares[pair] for pair in pairs) + squares["sgq"]
        variances[one] = float(rest / np.prod([sizes[c] for c in "sgq" if c != one]))
    return np.maximum([variances[effect] for effect in EFFECTS], 0)


def error(v: Floats, guessers: int, questions: int, guessers_too: bool) -> float:
    """Return the standard error of one system's EW, averaged over guessers and questions."""
    _, g, q, sg, sq, gq, rest = v
    over_questions = (q + sq + (gq + rest) / guessers) / questions
    return float(np.sqrt(over_questions + guessers_too * (g + sg) / guessers))


def reliability(v: Floats, guessers: int, questions: float) -> float:
    """Return the reliability of systems' EW between two samples of questions."""
    s, _, _, sg, sq, _, rest = v
    true = s + sg / guessers
    return float(true / (true + (sq + rest / guessers) / questions)) if true > 0 else 0.0


def tau(reliability_of: float) -> float:
    """Return Kendall's tau of two normal variables with the given correlation."""
    return float(2 / np.pi * np.arcsin(reliability_of))


def questions_for(v: Floats, guessers: int) -> float:
    """Return the number of questions at which tau between two samples is TAU; infinite if systems do not differ."""
    s, _, _, sg, sq, _, rest = v
    true, needed = s + sg / guessers, np.sin(TAU * np.pi / 2)
    return float((sq + rest / guessers) / true * needed / (1 - needed)) if true > 0 else np.inf


def splits(x: Floats, rng: np.random.Generator) -> list[float]:
    """Return Kendall's tau between the systems' EW on two random halves of the questions, for SPLITS splits."""
    means, half, found = x.mean(axis=1), x.shape[2] // 2, []
    for _ in range(SPLITS):
        order = rng.permutation(x.shape[2])
        a, b = means[:, order[:half]].mean(axis=1), means[:, order[half : 2 * half]].mean(axis=1)
        found.append(float(kendalltau(a, b).statistic))
    return found


def with_interval(cell: tuple[str, str], metric: str, value: float, drawn: list[float], n: int) -> Row:
    """Return a row with a value and the percentile interval of its resampled values `drawn`."""
    return Row(cell, metric, min(value, 1e6), *percentiles(np.minimum(drawn, 1e6)), n)


def needs(ledger: Ledger) -> list[str]:
    """Return a Markdown table with the number of questions needed for TAU, a row for each data set."""
    lines = []
    for dataset in DATASETS:
        cells = [ledger.one("questions", dataset=dataset, what=f"{m} guessers") for m in MOST]
        halves = ledger.one("tau", dataset=dataset, what="halves")
        lines.append([dataset, number(halves, 2), *(number(cell, 0) for cell in cells)])
    heads = [f"questions, guessers: {m}" for m in MOST]
    return markdown(("data set", "tau between halves", *heads), lines)


ITEMS = (
    Item(
        name="generalisability",
        shows="variance components of expected wins, and the questions that a stable ranking needs",
        config="",
        columns=("dataset", "what"),
        measure=measure,
        inputs=known_groups.ITEMS[0].inputs,
        blocks={
            "components": pivot(("dataset", "what"), columns("variance", digits=4)),
            "errors": pivot(("dataset", "what"), columns("error: standard error")),
            "needs": needs,
        },
        kept="needs the runs of known-groups",
    ),
)
