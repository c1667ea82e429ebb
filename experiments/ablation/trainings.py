"""Two systems, each trained several times: is one better, whichever training one happens to get?

What MultEval reports (Clark, Dyer, Lavie and Smith 2011, "Better hypothesis testing for statistical machine
translation: controlling for optimizer instability"), for any metric with additive statistics:

    s over trainings   standard deviation (n - 1) of the scores of the trainings
    s over questions   standard deviation of a training's score over bootstrap resamples of the questions, mean over
                       trainings: what another test set of this size would have changed
    p                  approximate randomisation, two-sided: in every question the outputs of all trainings of both
                       systems change places at random; how often the means then differ by as much or more

The interval, which MultEval does not have, resamples questions and trainings together; with a single training of a
system it knows nothing of its variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sqa.core.arrays import Floats
from sqa.core.errors import DataError
from sqa.core.permutation import permuted_sums
from sqa.core.significance import Resampled

_QUESTIONS, _TRAININGS = 5, 6  # streams of random numbers that share a seed with those of sqa/core
_TIE = 1e-9  # differences closer than this, relative to the observed one, are equal


class Difference(NamedTuple):
    """Mean score over the trainings of one system minus that of another."""

    value: float
    low: float
    high: float
    p: float  # in 1/(resamples+1) .. 1


def over_questions(stats: Sequence[Floats], metric: Resampled, resamples: int, seed: int) -> float:
    """Standard deviation over questions of each training's statistics (n, d), mean over trainings."""
    weights = _weights(len(stats[0]), resamples, seed)
    return float(np.mean([np.nanstd(metric.score_many(weights @ table), ddof=1) for table in stats]))


def compare_trainings(
    a: Sequence[Floats], b: Sequence[Floats], metric: Resampled, resamples: int = 1000, seed: int = 0,
    same: bool = False,
) -> Difference:  # fmt: skip
    """`a` and `b`: the statistics (n, d) of each training; row i of all of them is the same question.

    same: table i of both comes from the same training (one model at two k), so both are drawn together.
    """
    tables = [np.asarray(table, dtype=np.float64) for table in (*a, *b)]
    if not a or not b or len({table.shape for table in tables}) != 1:
        shapes = ", ".join(str(table.shape) for table in tables)
        raise DataError(f"{metric.name}: expected trainings of two systems on the same questions, got {shapes}")
    if same and len(a) != len(b):
        raise DataError(f"{metric.name}: expected the same trainings on both sides, got {len(a)} and {len(b)}")
    value = _gap(metric.score_many(np.stack([table.sum(axis=0) for table in tables]))[None], len(a))[0]
    weights = _weights(len(tables[0]), resamples, seed)
    scores = np.stack([metric.score_many(weights @ table) for table in tables], axis=1)  # (resamples, trainings)
    rng = np.random.default_rng([seed, _TRAININGS])
    drawn = [first + rng.integers(0, count, (resamples, count)) for first, count in ((0, len(a)), (len(a), len(b)))]
    if same:
        drawn[1] = drawn[0] + len(a)
    gaps = _gap(np.take_along_axis(scores, np.hstack(drawn), axis=1), len(a))
    low, high = np.nanpercentile(gaps, [2.5, 97.5])
    return Difference(float(value), float(low), float(high), _p(tables, len(a), metric, float(value), resamples, seed))


def _p(tables: Sequence[Floats], size: int, metric: Resampled, observed: float, resamples: int, seed: int) -> float:
    """(1 + #{|gap| >= |observed|}) / (B + 1); an undefined gap counts as being at least as large."""
    smaller = 0
    for sums in permuted_sums(np.stack(tables, axis=1), resamples, seed):  # (b, trainings, d)
        scores = metric.score_many(sums.reshape(-1, sums.shape[-1])).reshape(sums.shape[:2])
        smaller += int((np.abs(_gap(scores, size)) < abs(observed) * (1 - _TIE)).sum())
    return (1 + resamples - smaller) / (resamples + 1)


def _gap(scores: Floats, size: int) -> Floats:
    """(B, trainings) -> (B,): mean of the first `size` minus mean of the others."""
    gap: Floats = scores[:, :size].mean(axis=1) - scores[:, size:].mean(axis=1)
    return gap


def _weights(n: int, resamples: int, seed: int) -> Floats:
    """(resamples, n): how often each question is drawn in n draws with replacement."""
    rng = np.random.default_rng([seed, _QUESTIONS])
    return rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)
