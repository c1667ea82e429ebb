"""History of the claims over k: differences and verdicts of every published measurement.

The versions are commits of this repository.  The first has its verdicts in docs/results.md only; each later version
has the ledger `claims`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.lab.item import Item
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from sqa.core.paths import ROOT
from sqa.results import markdown

FIRST = ("6b550d66", "2026-11-23", "k from 3 to full input, every translator and guesser")
VERSIONS = {  # commit -> date, change
    "5806a1ea": ("2026-11-23", "k = 1 and 2 join the grid; one translator and two claims become the primary family"),
    "f76d9331": ("2026-11-24", "the language model writes every word"),
    "908e1905": ("2026-11-24", "a lexicon for the language model"),
    "83fdbd30": ("2026-11-25", "the Polish model reads glosses"),
    "cb675d30": ("2026-11-26", "language models trained on ten times as much"),
    "f79bc478": ("2026-11-27", "the same models on another machine"),
}
CLAIMS, SYSTEM = ("rise", "fall"), ["both", "language model", "rerank"]


def shown(commit: str, path: str) -> list[str]:
    """Return the lines of a file at a commit."""
    command = ["git", "show", f"{commit}:{path}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def measure(_: Path, __: Path) -> Iterator[Row]:
    """Yield the verdicts of the first version, the claims of each later version, and the spread of the differences."""
    commit, date, change = FIRST
    page = shown(commit, "docs/results.md")
    lines = [line.split("|") for line in page if line.startswith(("| xqb", "| pooled")) and "| EW rises" in line]
    undecided = sum("undecided" in line[5] for line in lines)
    yield Row((date, change, "rise and fall", "-"), "undecided", undecided, n=len(lines), unit="count")
    values: dict[str, list[float]] = {claim: [] for claim in CLAIMS}
    for commit, (date, change) in VERSIONS.items():
        for line in shown(commit, "experiments/ledger/claims.tsv"):
            cells = line.split("\t")
            if cells[:3] == SYSTEM and cells[3] in CLAIMS and cells[5] in ("ew", "p after Holm"):
                low, high = (float(end) if end else None for end in cells[7:9])
                row = Row((date, change, cells[3], cells[4]), cells[5], float(cells[6]), low, high, int(cells[9]))
                values[cells[3]] += [row.value] if row.metric == "ew" else []
                yield row
    for claim, of_claim in values.items():
        yield Row(("all", "versions", claim, "-"), "ew sd", float(np.std(of_claim, ddof=1)), n=len(of_claim))


def block(ledger: Ledger) -> list[str]:
    """Return a Markdown table with one row per version."""
    first = next(row for row in ledger.rows if row.metric == "undecided")
    none = f"undecided in {first.value:.0f} of {first.n} tests"
    lines = [[*first.cell[:2], none, "-"]]
    for date, change in dict.fromkeys(row.cell[:2] for row in ledger.where("ew")):
        gaps = []
        for claim in CLAIMS:
            [row] = ledger.where("ew", date=date, change=change, claim=claim)
            [p] = ledger.where("p after Holm", date=date, change=change, claim=claim)
            gaps.append(f"{number(row, 3, sign=True)}, p = {p.value:.4f}")
        lines.append([date, change, *gaps])
    return markdown(("date", "what changed", "rise", "fall"), lines)


ITEMS = (
    Item(
        name="claims-history",
        shows="verdicts on the claims over k in every published measurement",
        config="",
        columns=("date", "change", "claim", "between"),
        measure=measure,
        blocks={"table": block},
        kept="reads the repository's history",
    ),
)
