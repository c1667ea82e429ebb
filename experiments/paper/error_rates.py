"""Error rates of the primary claims over k (experiments/paper/claims.py).

False alarms: how often a claim is held although k has no effect.  The k of every question are permuted at random, and
both claims are tested as on the real table.  At level .05, a claim may be held in one set out of twenty.

Power: how often a true difference is found.  In permuted sets, some k win additional questions, drawn at random,
until their expected wins is DIFFERENCE above chance.  These k are either all between the smallest and full input
(a hill, as in the measured curves) or only the middle one (a spike, the hardest case).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from experiments.over_k import POOLED, OverK, all_series, p_of
from experiments.paper.claims import ALPHA, FAMILY, PRIMARY
from experiments.paper.figure3 import BEST
from experiments.results_book import grid_rows
from experiments.results_book.ledger import Row
from sqa.core.differences import PERMUTATIONS, holm, shuffled
from sqa.core.errors import DataError
from sqa.core.types import Floats

DIFFERENCE = 0.03  # expected wins
SETS, PLANTED = 1000, 200  # number of tables without and with an effect
ANY = "either claim"


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield the share of sets in which each claim is held, with its Clopper-Pearson interval."""
    by_system = {series[:3]: series for series in all_series(grid_rows.finished(config_path, runs))}
    series = by_system.get((POOLED, PRIMARY, BEST))
    if series is None:
        raise DataError(
            f"error-rates: no runs of the {PRIMARY} in both languages; `make lm`, then `sqa results update`"
        )
    yield from shares("false alarms", held(series, without_effect(series, SETS)))
    full = len(series.ks) - 1
    for shape, indices in (("hill", range(1, full)), ("spike", [full // 2])):
        tables = planted(series, PLANTED, indices)
        yield from shares(f"found: a {shape} of {DIFFERENCE}", held(series, tables, shuffled_only=False))


def held(series: OverK, tables: Floats, shuffled_only: bool = True) -> dict[str, np.ndarray]:
    """Return a boolean array (R,) for each claim: whether it is held on each of `tables` (n, K, d, R), after Holm."""
    permutations = PERMUTATIONS if shuffled_only else 2000
    p = np.stack([p_of(series, claim, tables, shuffled_only, permutations) for claim in FAMILY])
    corrected = np.array([holm(column) for column in p.T]).T <= ALPHA
    return {**dict(zip(FAMILY, corrected, strict=True)), ANY: corrected.any(axis=0)}


def without_effect(series: OverK, sets: int, seed: int = 0) -> Floats:
    """Return `sets` copies of the series' table, (n, K, d, sets), with the k of each question shuffled."""
    return shuffled(series.table("ew"), sets, seed)


def planted(series: OverK, sets: int, indices: Sequence[int], seed: int = 1) -> Floats:
    """Return shuffled tables in which the k at `indices` win further questions, which raises their EW by DIFFERENCE."""
    tables = without_effect(series, sets, seed)
    rng, start = np.random.default_rng(seed), 0
    for part in series.parts:
        n, won = len(part["ew"]), part["ew"][..., 0]
        value = float(won[won > 0].mean())
        for r in range(sets):
            drawn = start + rng.permutation(n)
            for index in indices:
                lost = drawn[tables[drawn, index, 0, r] == 0]
                tables[lost[: round(DIFFERENCE * n / value)], index, 0, r] = value / n
        start += n
    return tables


def shares(quantity: str, held_by_claim: dict[str, np.ndarray]) -> Iterator[Row]:
    """Yield the share of sets in which each claim is held."""
    yield from (share((claim,), quantity, yes) for claim, yes in held_by_claim.items())


def share(cell: tuple[str, ...], quantity: str, yes: np.ndarray) -> Row:
    """Return the share of true values in `yes` with its Clopper-Pearson interval."""
    ends = binomtest(int(yes.sum()), len(yes)).proportion_ci()
    return Row(cell, quantity, float(yes.mean()), float(ends.low), float(ends.high), len(yes), "share of sets")


ITEMS = (
    grid_rows.of_grid(
        "error-rates", "false alarms and power of the primary claims", columns=("claim",), measure=measure
    ),
)
