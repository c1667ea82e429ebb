"""Information in expected wins beyond accuracy and lag, and the number of questions that each outcome needs.

`R2` is the explained variance of a metric over the runs of the item `over-k`, by least squares from accuracy and DAL.
The rows of `residual` are the standard deviation that stays unexplained.

`questions` are needed to tell two translators apart in 80% of cases at p < .05 (two-sided, paired):
(1.960 + .842)^2 * variance / difference^2.  For *own pace*, this is the median over pairs of translators in the
headline table.  For *wait-1* and others, the pair is this text and the full-input text of the item `unseen-second`,
both at the pace of wait-1.
"""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from experiments.results_book.item import Item
from experiments.results_book.ledger import DIGITS, Row
from experiments.results_book.pages import ledger_of, ledger_path, read_values, values_path
from experiments.results_book.tables import Column, pivot
from sqa.core import Floats
from sqa.files import file_digest

OUTCOMES = ("ew", "oracle-ew", "accuracy")
EXPLAINED = ("ew", "oracle-ew", "ew@answer-at-end", "stable-ew")
GUESSERS = ("rerank", "bm25", "gru")
DETECT = (1.959964 + 0.841621) ** 2  # squared sum of the normal quantiles of .975 and .80
RUNS, TEST, OWN = "over-k", "unseen-second", "own pace"


def explained(outcome: Floats, predictors: Floats) -> tuple[float, float]:
    """Return R2 of an outcome (n,) from predictors (n, d), and the standard deviation of the residuals."""
    design = np.column_stack([np.ones(len(outcome)), predictors])
    residual = outcome - design @ np.linalg.lstsq(design, outcome, rcond=None)[0]
    freedom = len(outcome) - design.shape[1]
    return float(1 - residual.var() / outcome.var()), float(np.sqrt((residual**2).sum() / freedom))


def needed(a: Floats, b: Floats) -> float:
    """Return the number of questions that tell two systems apart, from statistics (n, 2); inf if they are equal."""
    gaps = a[:, 0] / a[:, 1] - b[:, 0] / b[:, 1]
    return float(DETECT * gaps.var(ddof=1) / gaps.mean() ** 2) if gaps.mean() else float("inf")


def over_runs() -> Iterator[Row]:
    """Yield how well accuracy and DAL explain each metric over the translators and k of a data set and guesser."""
    cells: dict[tuple[str, str], dict[tuple[str, ...], dict[str, float]]] = {}
    for row in ledger_of(RUNS).rows:
        cells.setdefault((row["dataset"], row["contestant"]), {}).setdefault(row.cell, {})[row.metric] = row.value
    for (dataset, guesser), runs in cells.items():
        found = {name: np.array([run[name] for run in runs.values()]) for name in (*EXPLAINED, "accuracy", "dal")}
        for name in EXPLAINED:
            r2, rest = explained(found[name], np.column_stack([found["accuracy"], found["dal"]]))
            yield Row((dataset, guesser, OWN, name), "R2", r2, n=len(runs), unit="0-1")
            yield Row((dataset, guesser, OWN, name), "residual", rest, n=len(runs), unit="0-1")


def over_pairs() -> Iterator[Row]:
    """Yield the number of questions that tell pairs of translators apart, for each outcome."""
    own, paced = read_values(RUNS), read_values(TEST)
    for dataset in dict.fromkeys(key[0] for key in own):
        systems = dict.fromkeys(key[:4] for key in own if key[0] == dataset and key[1] != "reference")
        for outcome in OUTCOMES:
            numbers = [needed(own[*a, outcome], own[*b, outcome]) for a, b in combinations(systems, 2)]
            cell = (dataset, GUESSERS[0], OWN, outcome)
            yield Row(cell, "questions", float(np.median(numbers)), n=len(numbers), unit="count")
    for guesser, text, k, outcome in paced:
        if text == k:
            number = needed(paced[guesser, text, k, outcome], paced[guesser, "full", k, outcome])
            yield Row(("unseen", guesser, f"wait-{k}", outcome), "questions", number, n=1, unit="count")


def measure(_: Path, __: Path) -> Iterator[Row]:
    """Yield the rows of both parts."""
    yield from over_runs()
    yield from over_pairs()


def inputs(_: Path) -> dict[str, str]:
    """Return the digests of the ledger and the values that the item reads."""
    files = [ledger_path(RUNS), values_path(RUNS), values_path(TEST)]
    return {f"file {path.name}": file_digest(path)[:DIGITS] for path in files}


SHOWN = {
    "explained": pivot(
        ("dataset", "outcome"),
        [Column(m, f"{m}, {g}", 3, cell={"guesser": g}) for g in GUESSERS for m in ("R2", "residual")],
    ),
    "questions": pivot(("dataset", "guesser", "pair"), [Column("questions", o, cell={"outcome": o}) for o in OUTCOMES]),
}
ABOUT = "what expected wins add to accuracy and lag, and the number of questions that each outcome needs"
ITEMS = (Item("outcomes", ABOUT, "", ("dataset", "guesser", "pair", "outcome"), measure, inputs, SHOWN),)
