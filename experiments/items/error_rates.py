"""How often the primary family of claims is held where k does not matter, and how often a true difference is found.

False alarms: the k of every question change places at random, and both claims are tested each time as they are on the
real table; at the level of .05 one set in twenty may hold one.  Power: in such sets, some k win questions that they did
not win, drawn at random, until they have DIFFERENCE more expected wins than chance gives: every k between the smallest
and full input (a hill, as the curves have), or the one in the middle alone (a spike, the hardest case).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from experiments.items.claims import ALPHA, FAMILY, PRIMARY
from experiments.items.over_k import BEST
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from experiments.ladders import POOLED, Ladder, ladders, p_of
from sqa.core.arrays import Floats
from sqa.core.errors import DataError
from sqa.core.permutation import PERMUTATIONS, holm, shuffled
from sqa.report import markdown

DIFFERENCE = 0.03  # expected wins
SETS, PLANTED = 1000, 200  # tables without and with an effect
ANY = "either claim"


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Shares of sets with their Clopper-Pearson intervals."""
    wanted = (POOLED, PRIMARY, BEST)
    found = [one for one in ladders(grid_rows.finished(config_path, runs)) if one[:3] == wanted]
    if not found:
        raise DataError(f"error-rates: no runs of the {PRIMARY} in both languages; make lm, then sqa results update")
    yield from shares("false alarms", held(found[0], without_effect(found[0], SETS)))
    full = len(found[0].ks) - 1
    for shape, places in (("hill", range(1, full)), ("spike", [full // 2])):
        tables = planted(found[0], PLANTED, places)
        yield from shares(f"found: a {shape} of {DIFFERENCE}", held(found[0], tables, alike=False))


def held(ladder: Ladder, tables: Floats, alike: bool = True) -> dict[str, np.ndarray]:
    """claim -> (R,) whether it is held on each table (n, K, d, R) after Holm over the family."""
    permutations = PERMUTATIONS if alike else 2000
    p = np.stack([p_of(ladder, claim, tables, alike, permutations) for claim in FAMILY])
    corrected = np.array([holm(column) for column in p.T]).T <= ALPHA
    return {**dict(zip(FAMILY, corrected, strict=True)), ANY: corrected.any(axis=0)}


def without_effect(ladder: Ladder, sets: int, seed: int = 0) -> Floats:
    """(n, K, d, sets): the k of each question in another order."""
    return shuffled([ladder.table("ew")], sets, seed)[0]


def planted(ladder: Ladder, sets: int, places: Sequence[int], seed: int = 1) -> Floats:
    """The same with an effect: the k at `places` win DIFFERENCE more, the same questions where they lost them."""
    tables = without_effect(ladder, sets, seed)
    rng, start = np.random.default_rng(seed), 0
    for part in ladder.parts:
        n, won = len(part["ew"]), part["ew"][..., 0]
        value = float(won[won > 0].mean())
        for r in range(sets):
            drawn = start + rng.permutation(n)
            for place in places:
                lost = drawn[tables[drawn, place, 0, r] == 0]
                tables[lost[: round(DIFFERENCE * n / value)], place, 0, r] = value / n
        start += n
    return tables


def shares(quantity: str, found: dict[str, np.ndarray]) -> Iterator[Row]:
    """A row for each claim."""
    for claim, yes in found.items():
        test = binomtest(int(yes.sum()), len(yes))
        ends = test.proportion_ci()
        yield Row((claim,), quantity, float(yes.mean()), float(ends.low), float(ends.high), len(yes), "share of sets")


def block(ledger: Ledger) -> list[str]:
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
