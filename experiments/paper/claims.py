"""The paper's claims over k: a tested primary family, and all other comparisons as differences with intervals.

Primary family (Holm over two tests): the language model, answered by `rerank` under the paper's rule, both
languages pooled with equal weight.

    rise   the best k has more expected wins than the smallest k
    fall   the best k has more expected wins than full input

The family was declared after these questions had been examined.  The tests are therefore descriptive, with a known
error rate, and not confirmatory.

experiments/ledger/error-rates.tsv tells how often a claim was wrongly held and how often a true difference was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.over_k import CLAIMS, COLUMNS, POOLED, all_series, differences, p_of
from experiments.paper.figure3 import BEST, NAMES
from experiments.results_book import grid_rows
from experiments.results_book.ledger import Ledger, Row
from experiments.results_book.tables import number
from sqa.core.differences import holm
from sqa.report import plots
from sqa.results import Frame, markdown

PRIMARY = "language model"
FAMILY = ("rise", "fall")
ALPHA = 0.05
DRAWN = ("rise", "fall", "oracle rise", "oracle fall")


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield differences with intervals, p-values for the best contestant, and the corrected primary family."""
    primary: list[Row] = []
    for series in all_series(grid_rows.finished(config_path, runs)):
        for row in Frame(COLUMNS, tuple(differences(series))).rows:
            yield row
            if series.contestant == BEST and row["claim"] in CLAIMS:
                p = Row(row.cell, "p", p_of(series, row["claim"]))
                yield p
                if (series.dataset, series.translator) == (POOLED, PRIMARY) and row["claim"] in FAMILY:
                    primary.append(p)
    for row, corrected in zip(primary, holm([row.value for row in primary]), strict=True):
        yield Row(row.cell, "p after Holm", corrected)


def block(ledger: Ledger) -> list[str]:
    """Return the Markdown table of the primary family."""
    lines = []
    for p in ledger.where("p after Holm"):
        row = ledger.one("ew", **{name: p[name] for name in COLUMNS})
        verdict = "held" if p.value <= ALPHA else "not held"
        lines.append([p["claim"], p["between"], number(row, sign=True), _p(p.value), verdict])
    return markdown(["claim", "between", "difference in EW", "p (Holm)", "verdict"], lines)


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def forest(ledger: Ledger) -> plots.Figure:
    """Draw every difference in expected wins with its interval; the primary family is marked."""
    wins = [row for row in ledger.where(contestant=BEST) if row.metric in ("ew", "oracle-ew")]
    shown = [row for row in wins if row["claim"] in DRAWN]
    pairs = list(dict.fromkeys((row["dataset"], row["translator"]) for row in shown))
    panels: dict[str, list[plots.Dot]] = {kind: [] for kind in DRAWN}
    for row in shown:
        pair = row["dataset"], row["translator"]
        primary = pair == (POOLED, PRIMARY) and row["claim"] in FAMILY
        options: dict[str, Any] = {"number": 1, "size": 5, "width": 1.6} if primary else {}
        panels[row["claim"]].append(plots.Dot(pairs.index(pair), row, **options))
    names = [f"{dataset.removeprefix('xqb-')}: {NAMES.get(family, family)}" for dataset, family in pairs]
    xlabel = "expected wins of the best k minus the smallest k (rise), minus full input (fall)"
    return plots.forest(panels, names, plots.PAGE, xlabel)


ITEMS = (
    grid_rows.of_grid(
        "claims",
        "the paper's claims over k: a primary family tested, the rest as differences with intervals",
        columns=COLUMNS,
        measure=measure,
        blocks={"primary": block},
        figures={"docs/claims.png": forest},
    ),
)
