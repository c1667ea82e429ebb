"""The paper's claims about k, each judged on our own numbers, and what a verdict on any claim is.

A claim is "held" where chance would give our numbers at most once in twenty, "refuted" where that is so of its
opposite, and "undecided" otherwise, however the point estimates lie.  The p-values are corrected for the number of
claims that are judged together (Holm): every data set and the pool of all, every translator, every contestant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from experiments.claims import CLAIMS, Ladder, Test, judged
from sqa import metrics as metric_names
from sqa.core.permutation import holm
from sqa.core.significance import Comparison, compare

if TYPE_CHECKING:
    from experiments.grid import Row

ALPHA = 0.05
POOLED = "pooled"  # the questions of all data sets together
POWER = 0.8
_Z_POWER, _Z_INTERVAL = 0.8416, 1.96  # normal quantiles: of POWER, and of an interval's 97.5%
_SHOWN = {"peak": ("ew",), "earlier": ("ew", "oracle-ew"), "worse EW": ("ew",), "steep": ("bleu",),
          "better BLEU": ("bleu",)}  # fmt: skip
_PAIRS = {"peak": 2, "earlier": 2}  # differences shown of a claim; 1 of the others


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim on one data set."""

    dataset: str
    family: str
    guesser: str  # "-" where the claim is about the translation alone
    claim: str
    found: str  # our numbers
    p: float  # one-sided: how often chance gives as much or more
    against: float = 1.0  # the same of the opposite claim
    corrected: bool = False  # whether both are adjusted for all claims judged together

    @property
    def verdict(self) -> str:
        """In a word."""
        return "held" if self.p <= ALPHA else "refuted" if self.against <= ALPHA else "undecided"

    def cells(self) -> tuple[str, ...]:
        """The cells of a TSV line."""
        p = f"p={self.p:.3f}{' after Holm' if self.corrected else ''}"
        p += f" (opposite {self.against:.3f})" if self.against <= ALPHA else ""
        return self.dataset, self.family, self.guesser, self.claim, self.verdict, f"{self.found}; {p}"


def corrected(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Adjusted for being judged together (Holm), the claims and their opposites each."""
    p, against = holm([v.p for v in verdicts]), holm([v.against for v in verdicts])
    both = zip(verdicts, p, against, strict=True)
    return [replace(v, p=a, against=b, corrected=True) for v, a, b in both]


def of_difference(dataset: str, family: str, guesser: str, claim: str, found: str, gap: Comparison) -> Verdict:
    """A claim that one system chosen beforehand is above another: approximate randomisation, one-sided."""
    half = gap.p_randomization / 2
    p, against = (half, 1 - half) if gap.diff > 0 else (1 - half, half) if gap.diff < 0 else (1.0, 1.0)
    return Verdict(dataset, family, guesser, claim, found, p, against)


def of_interval(
    dataset: str, family: str, guesser: str, claim: str, found: str, value: float, low: float, high: float
) -> Verdict:
    """A claim that a value is above 0, from its 95% interval by the normal approximation."""
    deviation = (high - low) / (2 * _Z_INTERVAL)
    p = 1.0 if not deviation > 0 else 0.5 * math.erfc(value / deviation / math.sqrt(2))
    return Verdict(dataset, family, guesser, claim, found, p, 1.0 if not deviation > 0 else 1 - p)


# ---------------------------------------------------------------------------------------------- the claims about k


def judge(rows: Sequence[Row], resamples: int, seed: int, together: bool = True) -> list[Verdict]:
    """Every claim, for every data set and their pool, translator and contestant that has the rows and metrics for it.

    `together`: corrected for one another; else the caller has more to judge.
    """
    verdicts = [verdict for where, ladder, mine in ladders_of(rows, seed)
                for verdict in _of_ladder(where, ladder, mine, resamples, seed)]  # fmt: skip
    return corrected(verdicts) if together else verdicts


Where = tuple[str, str, str]  # data set, translator, contestant


def ladders_of(rows: Sequence[Row], seed: int) -> Iterator[tuple[Where, Ladder, tuple[str, ...]]]:
    """(where, ladder, its claims) of everything that can be judged; the pools last.

    A claim about the translation alone is judged with the first contestant, and called "-" there.
    """
    groups: dict[Where, list[Row]] = {}
    for row in rows:
        if row.cell.family != "reference":
            groups.setdefault((row.cell.dataset, row.cell.family, row.cell.guesser), []).append(row)
    tables = {where: _tables(members) for where, members in groups.items()}
    tables |= _pools(tables)
    seen = set()
    for (dataset, family, guesser), (ks, stats) in tables.items():
        ladder = Ladder(ks, {name: table[..., None] for name, table in stats.items()}, seed)
        if (dataset, family) not in seen:
            seen.add((dataset, family))
            yield (dataset, family, "-"), ladder, ("steep", "better BLEU")
        yield (dataset, family, guesser), ladder, tuple(c for c in CLAIMS if c not in ("steep", "better BLEU"))


_Tables = tuple[tuple[int | str, ...], dict[str, np.ndarray]]  # the k; metric -> (n, K, d)


def _tables(rows: Sequence[Row]) -> _Tables:
    ordered = sorted(rows, key=lambda row: math.inf if row.cell.k == "full" else int(row.cell.k))
    names = [name for name in ordered[0].stats if all(name in row.stats for row in ordered)]
    tables = {name: np.stack([row.stats[name] for row in ordered], axis=1) for name in names}
    return tuple(row.cell.k for row in ordered), tables


def _pools(tables: Mapping[Where, _Tables]) -> dict[Where, _Tables]:
    """The questions of all data sets that a translator and a contestant have with the same k, as one set."""
    groups: dict[tuple[str, str], list[_Tables]] = {}
    for (_, family, guesser), found in tables.items():
        groups.setdefault((family, guesser), []).append(found)
    pools = {}
    for (family, guesser), members in groups.items():
        if len(members) > 1 and len({ks for ks, _ in members}) == 1:
            names = [name for name in members[0][1] if all(name in stats for _, stats in members)]
            pooled = {name: np.concatenate([stats[name] for _, stats in members]) for name in names}
            pools[POOLED, family, guesser] = (members[0][0], pooled)
    return pools


def _of_ladder(where: Where, ladder: Ladder, claims: Sequence[str], resamples: int, seed: int) -> Iterator[Verdict]:
    for claim in claims:
        found = judged(claim, ladder)
        if found is not None:
            test, against = found
            numbers = "; ".join(_numbers(claim, ladder, test, resamples, seed))
            yield Verdict(*where, sentence(claim, ladder), numbers, float(test.p[0]), float(against[0]))


def sentence(claim: str, ladder: Ladder) -> str:
    """A claim in words."""
    finite = [k for k in ladder.ks if k != "full"]
    return {
        "peak": "EW rises, peaks and falls with k",
        "earlier": "oracle EW peaks earlier than EW",
        "worse EW": "full input has the worse EW",
        "steep": f"BLEU rises steeply from k={finite[0]} to {finite[len(finite) // 2]} and flattens",
        "better BLEU": "full input has the better BLEU",
    }[claim]


def _numbers(claim: str, ladder: Ladder, test: Test, resamples: int, seed: int) -> Iterator[str]:
    """The values at every k, the differences that decide with their intervals, and what these questions could show."""
    for metric in _SHOWN[claim]:
        values = ladder.scores(metric)[:, 0]
        digits, [built] = _digits(metric), metric_names.build([metric])
        yield f"{built.label} " + " ".join(
            f"{k}:{value:.{digits}f}" for k, value in zip(ladder.ks, values, strict=True)
        )
    gaps = []
    for metric, a, b in test.pairs[: _PAIRS.get(claim, 1)]:
        [built] = metric_names.build([metric])
        table = ladder.tables[metric][..., 0]
        gap = compare(table[:, a], table[:, b], built, resamples, seed)
        gaps.append(gap)
        yield f"{built.label} at k={ladder.ks[a]} minus k={ladder.ks[b]} {_difference(gap, _digits(metric))}"
    yield power(gaps[0], test, _digits(test.pairs[0][0]))


def power(gap: Comparison, test: Test, digits: int) -> str:
    """What these questions could show (at 5%, this claim alone, with a chance of POWER), and what this effect needs.

    What the effect must exceed by chance alone, and its deviation, fall with the root of the number of questions.
    """
    deviation = (gap.high - gap.low) / (2 * _Z_INTERVAL)
    excess, margin = float(test.effect[0]) - test.least, float(test.critical[0]) - test.least + _Z_POWER * deviation
    if not math.isfinite(margin) or margin <= 0:
        return f"{gap.n} questions"
    text = f"{gap.n} questions could show {test.least + margin:+.{digits}f}"
    if excess <= 0:
        return f"{text}; no number of questions would show this difference"
    return f"{text}; this difference would need {math.ceil(gap.n * (margin / excess) ** 2):,}"


def _digits(metric: str) -> int:
    return 1 if metric == "bleu" else 3


def _difference(c: Comparison, digits: int = 3) -> str:
    return f"{c.diff:+.{digits}f} [{c.low:+.{digits}f}, {c.high:+.{digits}f}]"
