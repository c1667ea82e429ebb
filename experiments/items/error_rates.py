"""How often the primary family of claims is held where k does not matter, and how often a true difference is found.

False alarms: the k of every question change places at random, and both claims are tested each time as they are on the
real table; at the level of .05 one set in twenty may hold one.  Power: in such sets, k in the middle wins questions
that it did not win, drawn at random, until it has DIFFERENCE more expected wins than chance gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from experiments.claims import Ladder, above_any
from experiments.items import claims
from experiments.items.claims import ALPHA, FALL, POOLED, PRIMARY, RISE, Over
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger as Rows
from experiments.lab.ledger import Row
from experiments.lab.tables import number
from sqa.core.arrays import Floats
from sqa.core.errors import DataError
from sqa.core.permutation import holm, shuffled
from sqa.report import markdown

DIFFERENCE = 0.03  # expected wins
SETS, PLANTED = 1000, 200  # tables without and with an effect
ANY = "either claim"


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Shares of sets with their Clopper-Pearson intervals."""
    found = [over for over in claims.ladders(grid_rows.finished(config_path, runs))
             if (over.dataset, over.translator) == (POOLED, PRIMARY)]  # fmt: skip
    if not found:
        raise DataError(f"error-rates: no runs of the {PRIMARY} in both languages; make lm, then sqa results update")
    yield from shares("false alarms", held(found[0], without_effect(found[0], SETS)))
    yield from shares(f"found, true difference {DIFFERENCE}", held(found[0], planted(found[0], PLANTED), alike=False))


def held(over: Over, tables: Floats, alike: bool = True) -> dict[str, np.ndarray]:
    """claim -> (R,) whether it is held on each table (n, K, d, R) after Holm over both."""
    p = np.stack([_p(over, claim, tables, alike) for claim in (RISE, FALL)])
    corrected = np.array([holm(column) for column in p.T]).T <= ALPHA
    return {RISE: corrected[0], FALL: corrected[1], ANY: corrected.any(axis=0)}


def _p(over: Over, claim: str, tables: Floats, alike: bool) -> Floats:
    if alike:
        return claims.judged(over, claim, "ew", tables)[0].p
    full = len(over.ks) - 1
    some, end = (list(range(full)), full) if claim == FALL else (list(range(1, full)), 0)
    ladder = replace(Ladder(over.ks, {"ew": tables}), permutations=2000)
    return above_any(ladder, "ew", some, end).p


def without_effect(over: Over, sets: int, seed: int = 0) -> Floats:
    """(n, K, d, sets): the k of each question in another order."""
    return shuffled([over.table("ew")], sets, seed)[0]


def planted(over: Over, sets: int, seed: int = 1) -> Floats:
    """The same with an effect: the k in the middle wins DIFFERENCE more, by questions that it lost."""
    tables = without_effect(over, sets, seed)
    rng, middle, start = np.random.default_rng(seed), len(over.ks) // 2, 0
    for part in over.parts:
        n = len(part["ew"])
        won = part["ew"][..., 0]
        value = float(won[won > 0].mean())
        for r in range(sets):
            lost = start + np.flatnonzero(tables[start : start + n, middle, 0, r] == 0)
            few = rng.choice(lost, size=min(len(lost), round(DIFFERENCE * n / value)), replace=False)
            tables[few, middle, 0, r] = value / n
        start += n
    return tables


def shares(quantity: str, found: dict[str, np.ndarray]) -> Iterator[Row]:
    """A row for each claim."""
    for claim, yes in found.items():
        test = binomtest(int(yes.sum()), len(yes))
        ends = test.proportion_ci()
        yield Row((claim,), quantity, float(yes.mean()), float(ends.low), float(ends.high), len(yes), "share of sets")


def block(ledger: Rows) -> list[str]:
    """A line for each claim."""
    quantities = list(dict.fromkeys(row.metric for row in ledger.rows))
    lines = [[claim, *(number(ledger.one(q, claim=claim)) for q in quantities)] for claim in ledger.values("claim")]
    return markdown.table(["claim", *quantities], lines)


ITEM = Item(
    name="error-rates",
    shows="false alarms and power of the primary claims",
    config="ablation.yaml",
    columns=("claim",),
    measure=measure,
    inputs=grid_rows.inputs,
    blocks={"table": block},
)
