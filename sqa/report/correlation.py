"""Correlation of two metrics' rankings: Kendall's tau over systems, with intervals over questions.

    sqa correlate RUN RUN RUN...

Every metric orders the systems from best to worst; tau-b (Kendall 1945) compares two of these orders:

    tau = (C - D) / sqrt((P - Ta) (P - Tb))

Of P pairs of systems, C have the same order and D the opposite one; Ta and Tb are the ties of the first and of the
second metric.  1 = the same order, -1 = the reverse, 0 = no relation.  If less is better (lag, TER), the sign is
reversed, so a positive tau with DAL means "the system that answers better also lags less".

Soft pairwise accuracy (Thompson et al. 2024) also measures how certain the two metrics are:

    SPA = mean over pairs of systems of 1 - |p - q|

p and q are the shares of resamples in which the first and the second metric rank the pair's first system above its
second one; a tie counts as half.  (Thompson et al. use p-values of permutation tests.)  SPA is between 0 and 1, and
higher if the metrics are more alike.

The interval shows the uncertainty of the order due to the choice of QUESTIONS.  Every resample draws questions with
replacement, the same ones for all systems and metrics, and scores all of them again (sqa/core/significance.py).
The systems are fixed, so the interval does not cover other systems.  Few systems have few orders: with 3 systems
tau is one of -1, -1/3, 1/3, 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import product

import numpy as np

from sqa.core import BuiltMetric, ConfigError, Interval, Metric, NotComputable, bootstrap_band
from sqa.pipeline import folder as folders
from sqa.pipeline import paired
from sqa.report.data import check_distinct
from sqa.results import Table, defined

LEAST = 3  # minimum number of systems; with two, tau could only be -1 or 1
RESAMPLES = 10_000
ANSWERS = ("ew", "oracle-ew", "accuracy", "mrr")  # the metrics of --against
HEADER = ("metric", "with", "tau", "low", "high", "systems", "questions", "resamples", "undefined", "note", "spa")
_TIE = 1e-9  # scores closer than this, relative to the larger one, are equal

Stats = Mapping[str, np.ndarray]  # metric -> array of shape (questions, d)


@dataclass(frozen=True, slots=True)
class Correlation:
    """Kendall's tau-b of two metrics over systems.  If tau is None, `note` gives the reason."""

    a: str
    b: str
    tau: float | None  # -1 to 1; positive if the better systems are the same
    low: float | None  # percentile interval over questions
    high: float | None
    systems: int
    n: int  # number of questions
    resamples: int = RESAMPLES
    undefined: int = 0  # resamples left out of the interval because one metric ties all systems
    note: str = ""
    spa: float | None = None  # soft pairwise accuracy, 0 to 1; None if tau is None


def table(rows: Iterable[Correlation]) -> Table:
    """Return one row per correlation."""
    return Table(HEADER, [astuple(row) for row in rows])


def correlate_runs(
    runs: Sequence[folders.RunFolder],
    wanted: Sequence[str] = (),
    against: Sequence[str] = ANSWERS,
    n_resamples: int = RESAMPLES,
) -> tuple[list[Correlation], list[str]]:
    """Return the correlations of finished runs, and a note for each metric that is left out.

    Raises ConfigError unless the runs are distinct and on the same questions, or if a requested metric is in no
    run.  A metric is left out if a run has no value for it, or if its signatures differ between runs.
    """
    check_distinct([run.folder for run in runs])
    paired.check_same_questions(runs)
    names, notes = paired.common_metrics(runs)
    asked = against if against != ANSWERS else ()
    if wrong := paired.unknown_metrics("--metric", wanted, runs) + paired.unknown_metrics("--against", asked, runs):
        raise ConfigError(wrong)
    answers = [name for name in against if name in names]
    pairs = pairs_of(answers, [name for name in names if not wanted or name in wanted])
    if not pairs:
        raise NotComputable("\n".join(["the runs have fewer than two common metrics that can be compared", *notes]))
    needed = list(dict.fromkeys(name for pair in pairs for name in pair))
    systems = {str(run.folder): run.stats for run in runs}
    return correlate(systems, paired.metrics_of(needed, runs[0]), pairs, n_resamples, runs[0].config.seed), notes


def pairs_of(answers: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each of `answers` paired with each different one of `names`, without pairs in reverse order."""
    pairs = [(a, b) for a, b in product(answers, names) if a != b]
    return [(a, b) for index, (a, b) in enumerate(pairs) if (b, a) not in pairs[:index]]


# ------------------------------------------------------------------------------------------------------- statistics


def correlate(
    systems: Mapping[str, Stats],
    metrics: Sequence[BuiltMetric],
    pairs: Sequence[tuple[str, str]],
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Correlation]:
    """Return one correlation per pair of metric names, in the order of `pairs`, all from the same resamples.

    `systems` maps each system to its statistics by metric, arrays of shape (n, d) with the same questions as rows.
    Raises ConfigError for fewer than LEAST systems.  If a metric lacks a value for a system, or ties all systems, its
    correlations have a note instead of a tau.
    """
    if len(systems) < LEAST:
        raise ConfigError(f"a correlation needs at least {LEAST} systems, got {len(systems)}")
    refused = {metric.name: reason for metric in metrics if (reason := _refusal(metric, systems))}
    usable = [metric for metric in metrics if metric.name not in refused]
    todo = [pair for pair in pairs if not refused.keys() & set(pair)]
    n = next((len(table) for stats in systems.values() for table in stats.values()), 0)
    measured: dict[tuple[str, str], tuple[Interval, int, float]] = {}
    if todo:
        tables = [stats[metric.name] for metric in usable for stats in systems.values()]
        agreement = _Agreement(usable, len(systems), [table.shape[1] for table in tables], todo)
        band = bootstrap_band(np.hstack(tables), agreement.score_many, n_resamples, seed)
        values = zip(band, agreement.undefined.tolist(), agreement.soft_accuracies(n_resamples), strict=True)
        measured = dict(zip(todo, values, strict=True))
    nothing = Interval(math.nan, math.nan, math.nan, n), 0, math.nan
    rows = []
    for pair in pairs:
        interval, undefined, spa = measured.get(pair, nothing)
        tau, low, high = map(defined, (interval.value, interval.low, interval.high))
        counts = len(systems), n, n_resamples
        if tau is None:
            reasons = [refused[name] for name in pair if name in refused] or ["all systems have the same value"]
            note = f"not computed: {'; '.join(reasons)}"
            rows.append(Correlation(*pair, tau, low, high, *counts, note=note))
        else:
            rows.append(Correlation(*pair, tau, low, high, *counts, undefined, spa=spa))
    return rows


def _refusal(metric: Metric, systems: Mapping[str, Stats]) -> str:
    """Return the reason why a metric cannot be compared over these systems, or ""."""
    for name, stats in systems.items():
        if metric.name not in stats:
            return f"{metric.name} has no value for {name}"
        try:
            metric.score(stats[metric.name].sum(axis=0))
        except NotComputable as refusal:
            return f"{refusal} ({name})"
    return ""


class _Agreement:
    """Kendall's tau-b of pairs of metrics, in the form of a curve for `bootstrap_band`.

    The columns of the statistics are ordered by metric, and within a metric by system.  `undefined`, of shape
    (pairs,), counts the rows scored so far in which a pair has no tau.
    """

    def __init__(
        self, metrics: Sequence[BuiltMetric], systems: int, widths: Sequence[int], pairs: Sequence[tuple[str, str]]
    ) -> None:
        self._metrics, self._systems, self._cuts = metrics, systems, np.cumsum(widths)[:-1]
        indices = {metric.name: index for index, metric in enumerate(metrics)}
        self._pairs = [(indices[a], indices[b]) for a, b in pairs]
        self.undefined = np.zeros(len(pairs), dtype=np.int64)
        # number of rows in which the first system of a pair is better, and whether it was better in the last row
        self._better = self._last = np.zeros((len(metrics), systems * (systems - 1) // 2))  # a tie counts as half

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        """Return tau-b of shape (B, pairs) for statistics of shape (B, columns); nan if a metric has no ranking."""
        parts = iter(np.split(stats, self._cuts, axis=1))
        signs = []
        for metric in self._metrics:
            scores = np.stack([metric.score_many(next(parts)) for _ in range(self._systems)])  # (S, B)
            signs.append(orders(scores if metric.higher_is_better else -scores))
        taus = np.stack([tau_b(signs[a], signs[b]) for a, b in self._pairs], axis=1)
        self.undefined += np.isnan(taus).sum(axis=0)
        better = np.nan_to_num(np.stack(signs)) / 2 + 0.5  # (metrics, pairs of systems, B)
        self._better, self._last = self._better + better.sum(axis=2), better[:, :, -1]
        return taus

    def soft_accuracies(self, n_resamples: int) -> list[float]:
        """Return the soft pairwise accuracies, once `bootstrap_band` has called `score_many` for all questions last."""
        shares = (self._better - self._last) / n_resamples  # (metrics, pairs of systems)
        return [float(1 - np.abs(shares[a] - shares[b]).mean()) for a, b in self._pairs]


def orders(scores: np.ndarray) -> np.ndarray:
    """Return the order of each pair of systems, of shape (S (S - 1) / 2, B), for scores of shape (S, B).

    1: the first system is higher, -1: the first system is lower, 0: tied, nan: undefined.
    """
    first, second = np.triu_indices(len(scores), 1)
    a, b = scores[first], scores[second]
    tied = np.abs(a - b) <= _TIE * np.maximum(np.abs(a), np.abs(b))
    return np.where(tied, 0.0, np.sign(a - b))


def tau_b(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b, of shape (B,), of two results of `orders`, of shape (P, B); nan if it is undefined."""
    agreement, untied = (a * b).sum(axis=0), (a * a).sum(axis=0) * (b * b).sum(axis=0)
    return np.divide(agreement, np.sqrt(untied), out=np.full(a.shape[1], np.nan), where=untied > 0)
