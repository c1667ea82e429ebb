"""The paper's claims about k as tests on tables of statistics, each against chance with its own selection of k.

Every claim is a difference that should be above 0, or several that should all be.  Where the best k is chosen on the
questions that it is then tested on, the null distribution is that of the best difference when the k of each question
change places at random (sqa/core/permutation.py), so chance may choose as well.  Where several differences must be
above 0 at once the largest p counts (an intersection-union test: no correction is needed).  Every test takes several
tables at a time, which is how its own rate of false alarms is measured (experiments/ablation/false_alarms.py).

`against` is the p-value of the opposite: only that makes a claim "refuted".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqa import metrics as metric_names
from sqa.core.arrays import Floats
from sqa.core.permutation import PERMUTATIONS, null_of, p_value, p_values, quantile_95
from sqa.core.significance import bootstrap_weights

STEEP = 1.0  # BLEU gained from the first to the middle k that may be called steep; the paper's curves gain more
LEAST = 3  # finite k
CLAIMS = ("peak", "earlier", "worse EW", "steep", "better BLEU")


@dataclass(frozen=True, slots=True)
class Ladder:
    """One translator at every k, answered by one contestant: statistics of several tables (one: the real one)."""

    ks: tuple[int | str, ...]  # from the smallest to full input
    tables: Mapping[str, Floats]  # metric -> (n, K, d, R)
    seed: int = 0
    permutations: int = PERMUTATIONS
    alike: bool = False  # every table is the first one with the k of its questions in another order

    @property
    def full(self) -> int:
        """The place of full input."""
        return len(self.ks) - 1

    def has(self, *metrics: str) -> bool:
        return all(name in self.tables for name in metrics)

    def scores(self, metric: str) -> Floats:
        """(K, R): the metric at every k."""
        return _scorer(metric, self.tables[metric].shape[2])(_flat(self.tables[metric]).sum(axis=0)[None])[0]


@dataclass(frozen=True, slots=True)
class Test:
    """What a test found, for each of the R tables."""

    p: Floats  # (R,)
    effect: Floats  # (R,) the difference that should be above 0; of several the smallest
    critical: Floats  # (R,) what the difference must exceed to be significant alone at 5%
    pairs: tuple[tuple[str, int, int], ...]  # of the first table: metric and the places of k each effect is between
    least: float = 0.0  # what the effect has to be more than


def judged(claim: str, ladder: Ladder) -> tuple[Test, Floats] | None:
    """(the test, p of the opposite (R,)); None where the ladder has not what the claim is about."""
    needed, waits, test = _TESTS[claim]
    full = ladder.ks[-1] == "full"
    if len(ladder.ks) - full < LEAST or not ladder.has(*needed) or (waits and not full):
        return None
    return test(ladder)


# ------------------------------------------------------------------------------------------------------- the claims


def _peak(ladder: Ladder) -> tuple[Test, Floats]:
    """EW rises, peaks and falls: some k between the first and full input is above both."""
    inner = range(1, ladder.full)
    test = _all_of(above_any(ladder, "ew", inner, 0), above_any(ladder, "ew", inner, ladder.full))
    ends = [above_all(ladder, "ew", end, inner).p for end in (0, ladder.full)]
    return test, np.minimum(1, 2 * np.minimum(*ends))


def _worse_ew(ladder: Ladder) -> tuple[Test, Floats]:
    """Some k has a better EW than full input."""
    finite = range(ladder.full)
    return above_any(ladder, "ew", finite, ladder.full), above_all(ladder, "ew", ladder.full, finite).p


def _better_bleu(ladder: Ladder) -> tuple[Test, Floats]:
    """Full input has a better BLEU than every k."""
    finite = range(ladder.full)
    return above_all(ladder, "bleu", ladder.full, finite), above_any(ladder, "bleu", finite, ladder.full).p


def _earlier(ladder: Ladder) -> tuple[Test, Floats]:
    """Oracle EW peaks at a smaller k than EW."""
    return _peaks_before(ladder, "oracle-ew", "ew"), _peaks_before(ladder, "ew", "oracle-ew").p


def _steep(ladder: Ladder) -> tuple[Test, Floats]:
    """BLEU gains at least STEEP from the first k to the middle one, and more than twice what it changes after that.

    Nothing is chosen, so both are tested by resampling the questions.
    """
    places = [0, (ladder.full + (ladder.ks[-1] != "full")) // 2, ladder.full - (ladder.ks[-1] == "full")]
    table = ladder.tables["bleu"][:, places]
    n, _, d, _ = table.shape
    score, columns = _scorer("bleu", d), _flat(table).reshape(n, -1)
    size = max(1, 4_000_000 // columns.shape[1])  # sums held at a time: 32 MB
    drawn = [
        score((weights[start : start + size] @ columns).reshape(-1, 3, columns.shape[1] // 3))
        for weights in bootstrap_weights(n, ladder.permutations, ladder.seed)
        for start in range(0, len(weights), size)
    ]
    first, middle, last = np.concatenate(drawn).transpose(1, 0, 2)  # (B, R) each
    early, late = middle - first, last - middle
    gains = ladder.scores("bleu")[places]
    gained = gains[1] - gains[0]
    short = [early - STEEP, early - 2 * np.abs(late)]
    p = np.maximum(*((1 + (~(values > 0)).sum(axis=0)) / (len(values) + 1) for values in short))
    against = (1 + (~(early < STEEP)).sum(axis=0)) / (len(early) + 1)
    critical = STEEP + 1.645 * early.std(axis=0)
    return Test(p, gained, critical, (("bleu", places[1], places[0]),), STEEP), against


_TESTS: dict[str, tuple[tuple[str, ...], bool, Callable[[Ladder], tuple[Test, Floats]]]] = {
    # the metrics it needs, whether it is about full input, the test
    "peak": (("ew",), True, _peak),
    "earlier": (("ew", "oracle-ew"), False, _earlier),
    "worse EW": (("ew",), True, _worse_ew),
    "steep": (("bleu",), False, _steep),
    "better BLEU": (("bleu",), True, _better_bleu),
}


# ------------------------------------------------------------------------------------------------ parts of the tests


def above_any(ladder: Ladder, metric: str, some: Sequence[int], one: int) -> Test:
    """The best of `some` k is above `one`: against the best of as many when all these change places."""
    places = [one, *some]
    table = ladder.tables[metric][:, places]
    score = _scorer(metric, table.shape[2])

    def gap(sums: Floats) -> Floats:
        values = score(sums)
        return values[:, 1:].max(axis=1) - values[:, 0]

    observed = gap(_flat(table).sum(axis=0)[None])[0]
    if ladder.alike and len(places) == len(ladder.ks):  # then one null distribution is that of all tables
        null = null_of(_flat(table[..., :1]), gap, ladder.permutations, ladder.seed)
        p, critical = p_value(observed, null), np.broadcast_to(quantile_95(null), observed.shape)
    else:
        p, critical = p_values(table, gap, observed, ladder.permutations, ladder.seed)
    best = int(np.argmax(ladder.scores(metric)[list(some), 0]))
    return Test(p, observed, critical, ((metric, list(some)[best], one),))


def above_all(ladder: Ladder, metric: str, one: int, others: Sequence[int]) -> Test:
    """`one` k is above each of the others."""
    return _all_of(*(above_any(ladder, metric, [one], other) for other in others))


def _peaks_before(ladder: Ladder, early: str, late: str) -> Test:
    """The peak of `early` is at a smaller k than that of `late`: each is above itself at the other's peak.

    For each metric alone its k change places, the other's peak staying where it is.
    """
    scores = {name: ladder.scores(name) for name in (early, late)}  # (K, R)
    first, second = scores[early].argmax(axis=0), scores[late].argmax(axis=0)  # (R,)
    order, sets = np.arange(len(ladder.ks))[:, None], np.arange(len(first))
    tests = []
    for name, own, other, beyond in ((late, second, first, order > first), (early, first, second, order < second)):
        score = _scorer(name, ladder.tables[name].shape[2])

        def gap(sums: Floats, other: Any = other, beyond: Any = beyond, score: Any = score) -> Floats:
            values = score(sums)  # (b, K, R), or of tables that are alike (b, K, 1)
            at_other = values[:, other, sets if values.shape[2] > 1 else 0]
            return np.where(beyond, values, -np.inf).max(axis=1) - at_other

        table = ladder.tables[name][..., :1] if ladder.alike else ladder.tables[name]
        null = null_of(_flat(table), gap, ladder.permutations, ladder.seed, len(sets))
        observed = scores[name][own, sets] - scores[name][other, sets]
        p = np.where(first < second, p_value(observed, null), 1.0)
        tests.append(Test(p, np.where(first < second, observed, -observed), quantile_95(null),
                          ((name, int(own[0]), int(other[0])),)))  # fmt: skip
    return _all_of(*tests)


def discordance(
    one: tuple[Any, Floats], other: tuple[Any, Floats], permutations: int = PERMUTATIONS, seed: int = 0
) -> tuple[float, int, int]:
    """(p, a, b): by `one` system a is better than b, by `other` worse, for the two of which that is surest.

    a = b, p = 1: chance gives every two of them as much.
    Each is a metric and its table (n, systems, d).  A difference is compared with the range of all systems when these
    change places, so every pair is tested at once; of the two metrics the larger p counts.
    """
    sides = []
    for metric, table in (one, other):
        sign = 1 if metric.higher_is_better else -1

        def score(sums: Floats, metric: Any = metric, sign: int = sign) -> Floats:
            values: Floats = sign * metric.score_many(sums.reshape(-1, sums.shape[2])).reshape(sums.shape[:2])
            return values

        def spread(sums: Floats, score: Callable[[Floats], Floats] = score) -> Floats:
            return np.ptp(score(sums), axis=1)

        null = null_of(table, spread, permutations, seed)  # (B, 1)
        values = score(table.sum(axis=0)[None])[0]
        gaps = values[:, None] - values  # (systems, systems)
        sides.append(p_value(gaps.ravel(), null).reshape(gaps.shape))
    both = np.maximum(sides[0], sides[1].T)
    a, b = np.unravel_index(both.argmin(), both.shape)
    return float(both[a, b]), int(a), int(b)


def _all_of(*tests: Test) -> Test:
    """All of them hold: the largest p, and the difference that is farthest from its critical value."""
    margins = np.stack([test.effect - test.critical for test in tests])
    weakest, sets = margins.argmin(axis=0), np.arange(margins.shape[1])
    return Test(
        np.max([test.p for test in tests], axis=0),
        np.stack([test.effect for test in tests])[weakest, sets],
        np.stack([test.critical for test in tests])[weakest, sets],
        (tests[int(weakest[0])].pairs[0], *(pair for i, test in enumerate(tests) if i != weakest[0]
                                            for pair in test.pairs)),
    )  # fmt: skip


def _flat(table: Floats) -> Floats:
    """(n, m, d, R) -> (n, m, d * R)."""
    return table.reshape(*table.shape[:2], -1)


def _scorer(metric: str, d: int) -> Callable[[Floats], Floats]:
    """Sums (b, m, d * R) -> scores (b, m, R)."""
    [built] = metric_names.build([metric])

    def score(sums: Floats) -> Floats:
        b, m, _ = sums.shape
        parts = sums.reshape(b, m, d, -1).swapaxes(2, 3)  # (b, m, R, d)
        values: Floats = built.score_many(parts.reshape(-1, d)).reshape(b, m, -1)
        return values

    return score
