"""Do two metrics rank the same systems alike?  Kendall's tau over systems, with intervals over questions.

    sqa correlate RUN RUN RUN...

Every metric orders the systems from best to worst; tau-b (Kendall 1945) compares two of these orders:

    tau = (C - D) / sqrt((P - Ta) (P - Tb))

of P pairs of systems C are ordered alike and D are not, Ta and Tb are ties of the one and of the other metric.  1 = the
same order, -1 = the reverse, 0 = no relation.  Orders are by GOODNESS: where less is better (lag, TER) the sign is
turned, so a positive tau with DAL means "the system that answers better also lags less".

The interval says how far the QUESTIONS leave the order open: every resample draws questions with replacement, the same
ones for all systems and metrics, and scores all of them again (see sqa/core/significance.py).  The systems are taken as
they are; nothing is said about others.  Few systems have few orders: with 3 of them tau is one of -1, -1/3, 1/3, 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sqa.core.errors import ConfigError, NotComputable
from sqa.core.registry import did_you_mean
from sqa.core.significance import bootstrap_band
from sqa.run import folder as folders
from sqa.run import paired

if TYPE_CHECKING:
    from sqa.core.interfaces import BuiltMetric, Metric

LEAST = 3  # systems; two have an order, but not one that could agree more or less
RESAMPLES = 10_000
ANSWERS = ("ew", "oracle-ew", "accuracy", "mrr")  # what the others are compared with
HEADER = ("metric", "with", "tau", "low", "high", "systems", "questions", "resamples", "undefined", "note")
_TIE = 1e-9  # scores closer than this, relative to the larger one, are equal

Stats = Mapping[str, np.ndarray]  # metric -> (questions, d)


@dataclass(frozen=True, slots=True)
class Correlation:
    """Kendall's tau-b of two metrics over systems.  tau None: not computed, `note` says why."""

    a: str
    b: str
    tau: float | None  # -1..1, by goodness
    low: float | None  # percentile interval over questions
    high: float | None
    systems: int
    n: int  # questions
    level: float = 0.95
    resamples: int = RESAMPLES
    undefined: int = 0  # resamples on which one of the two ties all systems; the interval is over the others
    note: str = ""

    def cells(self) -> list[str]:
        """The cells of a TSV line."""
        numbers = ["n/a" if x is None else f"{x:.6f}" for x in (self.tau, self.low, self.high)]
        counts = (self.systems, self.n, self.resamples, self.undefined)
        return [self.a, self.b, *numbers, *map(str, counts), self.note]


def main(
    runs: Sequence[Path],
    metrics: Sequence[str] = (),
    against: Sequence[str] = ANSWERS,
    resamples: int = RESAMPLES,
    as_json: bool = False,
) -> None:
    """`sqa correlate RUN RUN RUN...`: tau of each metric of `against` with each of `metrics` (none given: all)."""
    rows, notes = correlate_runs([folders.read(run) for run in runs], metrics, against, resamples)
    for note in notes:
        print(f"sqa: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False))
    else:
        print(folders.tsv(HEADER, (row.cells() for row in rows)), end="")


def correlate_runs(
    runs: Sequence[folders.RunFolder],
    wanted: Sequence[str] = (),
    against: Sequence[str] = ANSWERS,
    n_resamples: int = RESAMPLES,
) -> tuple[list[Correlation], list[str]]:
    """The correlations of finished runs, and a note for each metric that is left out.

    The runs must be on the same questions, and none twice: ConfigError.  A metric that a run has no value for, or with
    another signature, is left out; one that was asked for by name and that no run has is a ConfigError.
    """
    _check_runs(runs)
    names, notes = comparable([(str(run.folder), run.signatures) for run in runs])
    known = dict.fromkeys(name for run in runs for name in run.signatures)
    for option, asked in (("--metric", wanted), ("--against", against if against != ANSWERS else ())):
        wrong = [name for name in asked if name not in known]
        if wrong:
            raise ConfigError([f"{option}: no run has {name!r}{did_you_mean(name, list(known))}" for name in wrong])
    answers = [name for name in against if name in names]
    pairs = pairs_of(answers, [name for name in names if not wanted or name in wanted])
    if not pairs:
        raise NotComputable("\n".join(["the runs have no two metrics in common that could be compared", *notes]))
    needed = list(dict.fromkeys(name for pair in pairs for name in pair))
    systems = {str(run.folder): run.stats for run in runs}
    return correlate(systems, paired.metrics_of(needed, runs[0]), pairs, n_resamples, runs[0].config.seed), notes


def pairs_of(answers: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Each of `answers` with each of `names`, no pair in both directions."""
    pairs: dict[tuple[str, str], None] = {}
    for a in answers:
        for b in names:
            if a != b and (b, a) not in pairs:
                pairs[a, b] = None
    return list(pairs)


def comparable(systems: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[list[str], list[str]]:
    """Metrics that all systems have with one signature, a note for each other one; (name, signatures) per system."""
    names, notes = [], []
    for metric in dict.fromkeys(name for _, signatures in systems for name in signatures):
        lacking = [name for name, signatures in systems if metric not in signatures]
        found = {signatures[metric] for _, signatures in systems if metric in signatures}
        if lacking:
            notes.append(f"{metric}: not computed, {', '.join(lacking)} has no value for it")
        elif len(found) > 1:
            notes.append(f"{metric}: not computed, signatures differ: {' and '.join(sorted(found))}")
        else:
            names.append(metric)
    return names, notes


def _check_runs(runs: Sequence[folders.RunFolder]) -> None:
    if len(runs) < LEAST:
        raise ConfigError(f"a correlation needs at least {LEAST} runs, got {len(runs)}")
    places = [run.folder.resolve() for run in runs]
    twice = sorted({str(place) for place in places if places.count(place) > 1})
    if twice:
        raise ConfigError([f"{place}: is there twice" for place in twice])
    for a, b in pairwise(runs):
        if (a.dataset, a.questions) != (b.dataset, b.questions):
            sizes = f"({a.config.dataset.name}, {len(a.questions)} and {b.config.dataset.name}, {len(b.questions)})"
            raise ConfigError(f"{a.folder} and {b.folder}: not on the same questions {sizes}")


# ------------------------------------------------------------------------------------------------------- statistics


def correlate(
    systems: Mapping[str, Stats],
    metrics: Sequence[BuiltMetric],
    pairs: Sequence[tuple[str, str]],
    n_resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> list[Correlation]:
    """One correlation per pair of metrics' names, in that order, all from the same resamples.

    `systems` gives each system's statistics by metric, (n, d) with row i the same question in all.  Fewer than LEAST
    systems: ConfigError.  A metric without a value for one of them, or that ties them all, has no tau, and a note.
    """
    if len(systems) < LEAST:
        raise ConfigError(f"a correlation needs at least {LEAST} systems, got {len(systems)}")
    refused = {metric.name: reason for metric in metrics if (reason := _refusal(metric, systems))}
    usable = [metric for metric in metrics if metric.name not in refused]
    todo = [pair for pair in pairs if not refused.keys() & set(pair)]
    n = next((len(table) for stats in systems.values() for table in stats.values()), 0)
    blank = [Correlation(a, b, None, None, None, len(systems), n, level, n_resamples) for a, b in pairs]
    if todo:
        tables = [stats[metric.name] for metric in usable for stats in systems.values()]
        agreement = _Agreement(usable, len(systems), [table.shape[1] for table in tables], todo)
        band = bootstrap_band(np.hstack(tables), agreement, n_resamples, seed, level)
        undefined = agreement.undefined - np.isnan(band.value)  # the value itself went through it, too
        found = {
            pair: (float(value), float(low), float(high), int(without))
            for pair, value, low, high, without in zip(todo, band.value, band.low, band.high, undefined, strict=True)
        }
    return [_row(row, refused, found[row.a, row.b] if (row.a, row.b) in todo else None) for row in blank]


def _row(blank: Correlation, refused: Mapping[str, str], found: tuple[float, float, float, int] | None) -> Correlation:
    values = asdict(blank)
    if found is None:
        values["note"] = "not computed: " + "; ".join(refused[name] for name in (blank.a, blank.b) if name in refused)
    elif np.isnan(found[0]):
        values["note"] = "not computed: all systems have the same value"
    else:
        tau, low, high, undefined = found
        values |= {"tau": tau, "low": None if np.isnan(low) else low, "high": None if np.isnan(high) else high}
        values["undefined"] = undefined
    return Correlation(**values)


def _refusal(metric: Metric, systems: Mapping[str, Stats]) -> str:
    """Why a metric cannot be compared over these systems; "" when it can."""
    for name, stats in systems.items():
        if metric.name not in stats:
            return f"{metric.name} has no value for {name}"
        try:
            metric.score(stats[metric.name].sum(axis=0))
        except NotComputable as refusal:
            return f"{refusal} ({name})"
    return ""


class _Agreement:
    """Kendall's tau-b of some pairs of metrics as a curve for `bootstrap_band`, from the statistics side by side.

    Columns: metric by metric, of each the systems in order.  `undefined` (pairs,) counts the rows scored so far on
    which a pair has no tau.
    """

    name = "kendall-tau"

    def __init__(
        self, metrics: Sequence[BuiltMetric], systems: int, widths: Sequence[int], pairs: Sequence[tuple[str, str]]
    ) -> None:
        self._metrics, self._systems, self._cuts = metrics, systems, np.cumsum(widths)[:-1]
        places = {metric.name: place for place, metric in enumerate(metrics)}
        self._pairs = [(places[a], places[b]) for a, b in pairs]
        self.undefined = np.zeros(len(pairs), dtype=np.int64)

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        """(B, all columns) -> (B, pairs), nan where a metric is undefined or ties all systems."""
        parts = iter(np.split(stats, self._cuts, axis=1))
        signs = []
        for metric in self._metrics:
            scores = np.stack([metric.score_many(next(parts)) for _ in range(self._systems)])  # (S, B)
            signs.append(orders(scores if metric.higher_is_better else -scores))
        taus = np.stack([tau_b(signs[a], signs[b]) for a, b in self._pairs], axis=1)
        self.undefined += np.isnan(taus).sum(axis=0)
        return taus


def orders(scores: np.ndarray) -> np.ndarray:
    """Scores (S, B) -> (S (S - 1) / 2, B): 1 the first of two systems is higher, -1 lower, 0 tied, nan undefined."""
    one, other = np.triu_indices(len(scores), 1)
    a, b = scores[one], scores[other]
    tied = np.abs(a - b) <= _TIE * np.maximum(np.abs(a), np.abs(b))
    return np.where(tied, 0.0, np.sign(a - b))


def tau_b(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Kendall's tau-b (B,) of two `orders` (P, B); nan where one of them ties every pair or is undefined."""
    agreement, untied = (a * b).sum(axis=0), (a * a).sum(axis=0) * (b * b).sum(axis=0)
    return np.divide(agreement, np.sqrt(untied), out=np.full(a.shape[1], np.nan), where=untied > 0)
