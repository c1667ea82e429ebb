"""How often each claim of the ablation is "held" where k does not matter: python -m experiments.ablation.false_alarms

In finished runs of `sqa ablation CONFIG` the k of each question change places at random, 400 times, and every claim is
judged each time; whatever holds then is a false alarm.  Printed (TSV) for each claim as it is judged alone; all claims
together are corrected after that (Holm), which makes false alarms rarer.  Exit code 1 where a share is above 5% by more
than 400 draws explain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.claims import Ladder, judged
from experiments.grid import AblationConfig, Cell, Row, cells, trained, usable
from experiments.verdicts import ALPHA, ladders_of, sentence
from sqa.core.errors import SqaError
from sqa.core.permutation import shuffled
from sqa.run import folder as folders
from sqa.run.config import load
from sqa.run.folder import tsv

SETS = 400
WITHIN = 199  # permutations of each test
HEADER = ("dataset", "translator", "guesser", "claim", "questions", "false_held", "false_refuted")


class Alarms(NamedTuple):
    """Of one claim, shares of the tables in which k does not matter."""

    dataset: str
    translator: str
    guesser: str
    claim: str
    questions: int
    held: float
    refuted: float

    def cells(self) -> list[str]:
        """The cells of a TSV line."""
        return [*self[:4], str(self.questions), f"{self.held:.4f}", f"{self.refuted:.4f}"]


def alarms(rows: Sequence[Row], sets: int = SETS, within: int = WITHIN, seed: int = 0) -> Iterator[Alarms]:
    """Every claim of `judge`, on the same data sets and their pool."""
    for where, ladder, claims in ladders_of(rows, seed):
        names = [name for name in ("ew", "oracle-ew", "bleu") if ladder.has(name)]
        if not names:
            continue
        mixed = shuffled([ladder.tables[name][..., 0] for name in names], sets, seed)
        chance = Ladder(ladder.ks, dict(zip(names, mixed, strict=True)), seed, within)
        for claim in claims:
            found = judged(claim, chance)
            if found is not None:
                held, refuted = (float(np.mean(p <= ALPHA)) for p in (found[0].p, found[1]))
                yield Alarms(*where, sentence(claim, ladder), len(mixed[0]), held, refuted)


def finished(config: AblationConfig, runs: Path) -> list[Row]:
    """The rows of finished runs; nothing is run."""
    todo = cells(config, usable(config), trained(runs, config.sweeps, config.k))
    return [_row(cell, folders.read(runs / cell.run.name)) for cell in todo if cell.seed is None]


def _row(cell: Cell, run: folders.RunFolder) -> Row:
    return Row(cell, len(run.questions), run.stats, {}, run.signatures, None, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.ablation.false_alarms")
    parser.add_argument("config", type=Path, nargs="?", default=Path("configs/ablation.yaml"))
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the finished runs lie")
    parser.add_argument(
        "--sets", type=int, default=SETS, help="tables in which k changes places (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    try:
        config = load(given.config, AblationConfig)
        found = list(alarms(finished(replace(config, sweeps={}), given.runs), given.sets, seed=config.seed))
    except SqaError as error:
        print(f"false_alarms: {error}", file=sys.stderr)
        return error.exit_code
    print(tsv(HEADER, (one.cells() for one in found)), end="")
    most = ALPHA + 3 * (ALPHA * (1 - ALPHA) / given.sets) ** 0.5
    return 1 if any(one.held > most for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
