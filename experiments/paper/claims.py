"""The paper's claims over k: a primary family that is tested, everything else as differences with intervals.

Primary (Holm over two tests): the language model, answered by `rerank` under the paper's rule, both languages pooled,
each with the same weight.

    rise   the best k has more expected wins than the smallest k
    fall   the best k has more expected wins than full input

The family was declared after these questions had been looked at: it describes them with a known error rate and
confirms nothing.

Its error rates are how often a claim is held where k does not matter, and how often a true difference is found.  False
alarms: the k of every question change places at random, and both claims are tested each time as they are on the
real table; at the level of .05 one set in twenty may hold one.  Power: in such sets, some k win questions that they did
not win, drawn at random, until they have DIFFERENCE more expected wins than chance gives: every k between the smallest
and full input (a hill, as the curves have), or the one in the middle alone (a spike, the hardest case).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from experiments.lab import grid_rows
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from experiments.ladders import CLAIMS, COLUMNS, POOLED, Ladder, differences, ladders, p_of
from experiments.paper.figure3 import BEST, NAMES
from sqa.core.differences import PERMUTATIONS, holm, shuffled
from sqa.core.errors import DataError
from sqa.core.types import Floats
from sqa.report import plots
from sqa.results import markdown

PRIMARY = "language model"
FAMILY = ("rise", "fall")
ALPHA = 0.05
DIFFERENCE = 0.03  # expected wins
SETS, PLANTED = 1000, 200  # tables without and with an effect
ANY = "either claim"
DRAWN = ("rise", "fall", "oracle rise", "oracle fall")


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield differences with intervals, p-values for the best contestant, and the corrected primary family."""
    primary: list[Row] = []
    for ladder in ladders(grid_rows.finished(config_path, runs)):
        for row in differences(ladder):
            yield row
            if ladder.contestant == BEST and row.cell[3] in CLAIMS:
                p = Row(row.cell, "p", float(p_of(ladder, row.cell[3])[0]))
                yield p
                if (ladder.dataset, ladder.translator) == (POOLED, PRIMARY) and row.cell[3] in FAMILY:
                    primary.append(p)
    for row, corrected in zip(primary, holm([row.value for row in primary]), strict=True):
        yield Row(row.cell, "p after Holm", corrected)


def block(ledger: Ledger) -> list[str]:
    """Return the table of the primary family."""
    lines = []
    for p in ledger.where("p after Holm"):
        row = ledger.one("ew", **dict(zip(ledger.columns, p.cell, strict=True)))
        verdict = "held" if p.value <= ALPHA else "not held"
        lines.append([*p.cell[3:], number(row, sign=True), _p(p.value), verdict])
    return markdown(["claim", "between", "difference in EW", "p (Holm)", "verdict"], lines)


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def forest(ledger: Ledger) -> plots.Figure:
    """Draw every difference in expected wins with its interval; the primary family is marked."""
    shown = [row for row in ledger.where(contestant=BEST) if row.cell[3] in DRAWN and row.metric in ("ew", "oracle-ew")]
    pairs = list(dict.fromkeys(row.cell[:2] for row in shown))
    panels: dict[str, list[plots.Dot]] = {kind: [] for kind in DRAWN}
    for row in shown:
        primary = row.cell[:2] == (POOLED, PRIMARY) and row.cell[3] in FAMILY
        options: dict[str, Any] = {"number": 1, "size": 5, "width": 1.6} if primary else {}
        panels[row.cell[3]].append(plots.Dot(pairs.index(row.cell[:2]), row, **options))
    names = [f"{dataset.removeprefix('xqb-')}: {NAMES.get(family, family)}" for dataset, family in pairs]
    xlabel = "expected wins of the best k minus the smallest k (rise), minus full input (fall)"
    return plots.forest(panels, names, plots.PAGE, xlabel)


# ----------------------------------------------------------------------------------------------------- error rates


def error_rates(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield shares of sets with their Clopper-Pearson intervals."""
    by_system = {ladder[:3]: ladder for ladder in ladders(grid_rows.finished(config_path, runs))}
    ladder = by_system.get((POOLED, PRIMARY, BEST))
    if ladder is None:
        raise DataError(f"error-rates: no runs of the {PRIMARY} in both languages; make lm, then sqa results update")
    yield from shares("false alarms", held(ladder, without_effect(ladder, SETS)))
    full = len(ladder.ks) - 1
    for shape, indices in (("hill", range(1, full)), ("spike", [full // 2])):
        tables = planted(ladder, PLANTED, indices)
        yield from shares(f"found: a {shape} of {DIFFERENCE}", held(ladder, tables, shuffled_only=False))


def held(ladder: Ladder, tables: Floats, shuffled_only: bool = True) -> dict[str, np.ndarray]:
    """Return whether each claim is held on each table (n, K, d, R) after Holm over the family, as (R,) per claim."""
    permutations = PERMUTATIONS if shuffled_only else 2000
    p = np.stack([p_of(ladder, claim, tables, shuffled_only, permutations) for claim in FAMILY])
    corrected = np.array([holm(column) for column in p.T]).T <= ALPHA
    return {**dict(zip(FAMILY, corrected, strict=True)), ANY: corrected.any(axis=0)}


def without_effect(ladder: Ladder, sets: int, seed: int = 0) -> Floats:
    """Return (n, K, d, sets): the table with the k of each question shuffled."""
    return shuffled(ladder.table("ew"), sets, seed)


def planted(ladder: Ladder, sets: int, indices: Sequence[int], seed: int = 1) -> Floats:
    """Return shuffled tables in which the k at `indices` win DIFFERENCE more, on questions that they lost."""
    tables = without_effect(ladder, sets, seed)
    rng, start = np.random.default_rng(seed), 0
    for part in ladder.parts:
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
    """Yield a row for each claim."""
    for claim, yes in held_by_claim.items():
        test = binomtest(int(yes.sum()), len(yes))
        ends = test.proportion_ci()
        yield Row((claim,), quantity, float(yes.mean()), float(ends.low), float(ends.high), len(yes), "share of sets")


ITEMS = (
    grid_rows.of_grid(
        "claims",
        "the paper's claims over k: a primary family tested, the rest as differences with intervals",
        columns=COLUMNS,
        measure=measure,
        blocks={"primary": block},
        figures={"docs/claims.png": forest},
    ),
    grid_rows.of_grid(
        "error-rates", "false alarms and power of the primary claims", columns=("claim",), measure=error_rates
    ),
)
