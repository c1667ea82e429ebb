"""How often a claim of the ablation is "held" where k does not matter: python -m experiments.ablation.false_alarms

In finished runs of `sqa ablation CONFIG` the k of each question change places at random, 400 times, and all claims are
judged each time as the ablation does, with its permutations, corrected for one another (Holm); whatever holds then is a
false alarm.  Printed (TSV) for each claim, with the share of sets on which it would hold if it were the only claim; the
last line is the share of sets on which any claim is held, which Holm promises to be 5% at most.  Exit code 1 where it
is more than that by three deviations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.claims import Ladder, judged
from experiments.grid import AblationConfig, Cell, Row, cells, trained, usable
from experiments.verdicts import ALPHA, Where, ladders_of, sentence
from sqa.core.arrays import Bools, Floats
from sqa.core.errors import ConfigError, SqaError
from sqa.core.permutation import PERMUTATIONS, holm, shuffled
from sqa.run import folder as folders
from sqa.run.config import load
from sqa.run.folder import tsv

SETS = 400
HEADER = ("dataset", "translator", "guesser", "claim", "questions", "false_held", "alone", "false_refuted")


class Alarms(NamedTuple):
    """Of one claim, shares of the tables in which k does not matter."""

    dataset: str
    translator: str
    guesser: str
    claim: str
    questions: int
    held: float  # as the ablation judges, with all other claims
    alone: float  # held by its own p-value
    refuted: float  # as the ablation judges

    def cells(self) -> list[str]:
        """The cells of a TSV line."""
        return [*self[:4], str(self.questions), *(f"{share:.4f}" for share in self[5:])]


def alarms(rows: Sequence[Row], sets: int = SETS, seed: int = 0) -> list[Alarms]:
    """Every claim of `judge`, on the same data sets and their pool, then all of them: whether any is held."""
    found: list[tuple[Where, str, int, Floats, Floats]] = []  # with p and p of the opposite, (sets,) each
    for where, ladder, claims in ladders_of(rows, seed):
        names = [name for name in ("ew", "oracle-ew", "bleu") if ladder.has(name)]
        if not names:
            continue
        mixed = shuffled([ladder.tables[name][..., 0].astype(np.float32) for name in names], sets, seed)
        chance = Ladder(ladder.ks, dict(zip(names, mixed, strict=True)), seed, alike=True)
        for claim in claims:
            tested = judged(claim, chance)
            if tested is not None:
                found.append((where, sentence(claim, ladder), len(mixed[0]), tested[0].p, tested[1]))
    held, refuted = (family(np.stack([one[place] for one in found])) for place in (3, 4))
    each = [
        Alarms(*where, claim, n, *map(share, (held[i], alone <= ALPHA, refuted[i])))
        for i, (where, claim, n, alone, _) in enumerate(found)
    ]
    # that BLEU does not rise by a point is true where k does not matter
    opposite = [one for one, (_, claim, *_) in zip(refuted, found, strict=True) if not claim.startswith("BLEU")]
    any_alone = np.any([one[3] <= ALPHA for one in found], axis=0)
    together = map(share, (held.any(axis=0), any_alone, np.any(opposite, axis=0)))
    return [*each, Alarms("all", "-", "-", "any of these", max(one.questions for one in each), *together)]


def family(p: Floats) -> Bools:
    """Which of the claims that are judged together hold, by their p-values: (claims, sets) -> (claims, sets)."""
    if len(p) > ALPHA * (PERMUTATIONS + 1):
        raise ConfigError(f"{len(p)} claims: {PERMUTATIONS:,} permutations cannot hold one of so many")
    return np.array([holm(column) for column in p.T]).T <= ALPHA


def share(found: Bools | Sequence[bool]) -> float:
    """Of the sets."""
    return float(np.mean(found))


def too_many(false: float, sets: int) -> bool:
    """Whether a share of the sets is above ALPHA by more than chance."""
    return false > ALPHA + 3 * (ALPHA * (1 - ALPHA) / sets) ** 0.5


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
        found = alarms(finished(replace(config, sweeps={}), given.runs), given.sets, config.seed)
    except SqaError as error:
        print(f"false_alarms: {error}", file=sys.stderr)
        return error.exit_code
    print(tsv(HEADER, (one.cells() for one in found)), end="")
    return 1 if too_many(found[-1].held, given.sets) else 0


if __name__ == "__main__":
    sys.exit(main())
