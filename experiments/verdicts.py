"""The paper's claims about k, each judged on our own numbers with paired tests over questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqa import metrics as metric_names
from sqa.core.significance import Comparison, compare

if TYPE_CHECKING:
    from experiments.grid import Row

SIGNIFICANT = 0.05  # two-sided, approximate randomisation over questions
STEEP = 1.0  # BLEU gained from the first to the middle k that may be called steep; the paper's curves gain more


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim on one data set."""

    dataset: str
    family: str
    guesser: str  # "-" where the claim is about the translation alone
    claim: str
    found: str  # our numbers
    held: bool  # by the point estimates
    significant: bool | None  # whether the differences behind it are; None where the claim is about an order of peaks

    @property
    def verdict(self) -> str:
        """In words."""
        if not self.held:
            return "did not hold"
        return {True: "held", False: "held, not significant", None: "held (order of peaks)"}[self.significant]

    def cells(self) -> tuple[str, ...]:
        """The cells of a TSV line."""
        return self.dataset, self.family, self.guesser, self.claim, self.verdict, self.found


class _Ladder:
    """The rows of one translator family and guesser on one data set, from the smallest k to full input.

    Without full input in the config's `k`, `all` ends with the greatest k, and claims about full input are not judged.
    """

    def __init__(self, rows: Sequence[Row], resamples: int, seed: int) -> None:
        self.finite = sorted((row for row in rows if row.cell.k != "full"), key=lambda row: int(row.cell.k))
        self.all = [*self.finite, *(row for row in rows if row.cell.k == "full")]
        self.resamples, self.seed = resamples, seed

    @property
    def full(self) -> Row:
        return self.all[-1]

    def can(self, *metrics: str, full: bool = True) -> bool:
        """Whether every row has these metrics, and full input is there if it is needed."""
        known = all(name in row.intervals for row in self.all for name in metrics)
        return known and (self.full.cell.k == "full" or not full)

    def value(self, row: Row, metric: str) -> float:
        return row.intervals[metric].value

    def peak(self, metric: str) -> Row:
        """The row with the highest value, full input included; the smaller k on a tie."""
        return max(self.all, key=lambda row: self.value(row, metric))

    def compare(self, a: Row, b: Row, metric: str) -> Comparison:
        """a - b, paired over questions."""
        built = metric_names.build([metric])[0]
        return compare(a.stats[metric], b.stats[metric], built, self.resamples, self.seed)

    def show(self, metric: str, digits: int) -> str:
        return " ".join(f"{row.cell.k}:{self.value(row, metric):.{digits}f}" for row in self.all)


def judge(rows: Sequence[Row], resamples: int, seed: int) -> list[Verdict]:
    """Every claim, for every data set, translator family and guesser that has the rows and the metrics for it."""
    ladders: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.cell.family != "reference":
            ladders.setdefault((row.cell.dataset, row.cell.family, row.cell.guesser), []).append(row)
    verdicts, seen = [], set()
    for (dataset, family, guesser), members in ladders.items():
        ladder = _Ladder(members, resamples, seed)
        if len(ladder.finite) < 3:
            continue
        where = (dataset, family)
        if where not in seen:
            seen.add(where)
            verdicts += [Verdict(*where, "-", *rest) for rest in _of_translation(ladder)]
        verdicts += [Verdict(*where, guesser, *rest) for rest in _of_answers(ladder)]
    return verdicts


_Judged = tuple[str, str, bool, bool | None]


def _of_translation(ladder: _Ladder) -> Iterator[_Judged]:
    """The claims about BLEU that can be judged."""
    if ladder.can("bleu", full=False):
        yield _bleu_flattens(ladder)
    if ladder.can("bleu"):
        yield _full_has_best_bleu(ladder)


def _of_answers(ladder: _Ladder) -> Iterator[_Judged]:
    """The claims about expected wins that can be judged."""
    if ladder.can("ew"):
        yield _ew_peaks(ladder)
    if ladder.can("ew", "oracle-ew", full=False):
        yield _oracle_earlier(ladder)
    if ladder.can("ew"):
        yield _full_has_worse_ew(ladder)


def _ew_peaks(ladder: _Ladder) -> _Judged:
    """EW rises, peaks and falls with k: the peak lies at neither end, and is above both."""
    peak, first, full = ladder.peak("ew"), ladder.finite[0], ladder.full
    inside = peak not in (first, full)
    rise, fall = ladder.compare(peak, first, "ew"), ladder.compare(peak, full, "ew")
    significant = rise.p_randomization < SIGNIFICANT and fall.p_randomization < SIGNIFICANT
    found = (
        f"EW {ladder.show('ew', 3)}; peak k={peak.cell.k}, {_difference(rise)} over k={first.cell.k}, "
        f"{_difference(fall)} over full"
    )
    return "EW rises, peaks and falls with k", found, inside, significant


def _oracle_earlier(ladder: _Ladder) -> _Judged:
    """Oracle EW peaks at a smaller k than EW."""
    order = [row.cell.k for row in ladder.all]
    oracle, buzzer = ladder.peak("oracle-ew").cell.k, ladder.peak("ew").cell.k
    found = f"oracle EW {ladder.show('oracle-ew', 3)}; peaks at k={oracle}, EW at k={buzzer}"
    return "oracle EW peaks earlier than EW", found, order.index(oracle) < order.index(buzzer), None


def _bleu_flattens(ladder: _Ladder) -> _Judged:
    """BLEU rises steeply from the first k to the middle one and flattens after it."""
    first, middle, last = ladder.finite[0], ladder.finite[len(ladder.finite) // 2], ladder.finite[-1]
    early, late = ladder.compare(middle, first, "bleu"), ladder.compare(last, middle, "bleu")
    found = (
        f"BLEU {ladder.show('bleu', 1)}; {early.diff:+.1f} from k={first.cell.k} to {middle.cell.k}, "
        f"{late.diff:+.1f} from k={middle.cell.k} to {last.cell.k}"
    )
    claim = f"BLEU rises steeply from k={first.cell.k} to {middle.cell.k} and flattens"
    return claim, found, early.diff >= STEEP and early.diff > 2 * abs(late.diff), early.p_randomization < SIGNIFICANT


def _full_has_best_bleu(ladder: _Ladder) -> _Judged:
    """Full input has a better BLEU than every k."""
    best = max(ladder.finite, key=lambda row: ladder.value(row, "bleu"))
    gap = ladder.compare(ladder.full, best, "bleu")
    found = f"full {gap.a:.1f}, best k={best.cell.k} {gap.b:.1f}, {_difference(gap, 1)}"
    return "full input has the better BLEU", found, gap.diff > 0, gap.p_randomization < SIGNIFICANT


def _full_has_worse_ew(ladder: _Ladder) -> _Judged:
    """Full input has a worse EW than the best k."""
    best = max(ladder.finite, key=lambda row: ladder.value(row, "ew"))
    gap = ladder.compare(best, ladder.full, "ew")
    found = f"best k={best.cell.k} {gap.a:.3f}, full {gap.b:.3f}, {_difference(gap)}"
    return "full input has the worse EW", found, gap.diff > 0, gap.p_randomization < SIGNIFICANT


def _difference(c: Comparison, digits: int = 3) -> str:
    return f"{c.diff:+.{digits}f} [{c.low:+.{digits}f}, {c.high:+.{digits}f}] p={c.p_randomization:.3f}"
