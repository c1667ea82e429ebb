"""Pairwise comparison of several runs: differences corrected for multiple tests.

    sqa compare RUN RUN RUN... --metric ew --metric bleu

The p-values are from approximate randomisation over questions (sqa/core/differences.py).  For each metric, `p_holm`
is adjusted for all pairs of runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from sqa.core.differences import holm
from sqa.core.errors import ConfigError
from sqa.core.registry import did_you_mean
from sqa.pipeline import paired, saving
from sqa.pipeline.folder import RunFolder
from sqa.pipeline.paired import ComparisonRow
from sqa.report.data import check_distinct, run_names
from sqa.results import Table


@dataclass(frozen=True, slots=True)
class Pair:
    """A comparison of two runs by one metric."""

    a: str
    b: str
    row: ComparisonRow
    p_holm: float  # adjusted over all pairs of runs for this metric


def _check(runs: Sequence[RunFolder], metrics: Sequence[str], resamples: int) -> None:
    """Raise ConfigError for too few runs, duplicate runs, unknown metrics, or no resamples."""
    problems = [] if len(runs) > 1 else ["RUN: a comparison needs at least two"]
    measured = dict.fromkeys(name for run in runs for name in run.signatures)
    problems += [f"--metric: no run has {m!r}{did_you_mean(m, list(measured))}" for m in metrics if m not in measured]
    problems += [] if resamples >= 1 else [f"--resamples: must be >= 1, got {resamples}"]
    if problems:
        raise ConfigError(problems)
    if len(runs) > 2:  # a run may be compared with itself, as a check
        check_distinct([run.folder for run in runs])


def compare_all(
    runs: Sequence[RunFolder], metrics: Sequence[str] = (), resamples: int = saving.RESAMPLES
) -> tuple[list[Pair], list[str]]:
    """Compare each pair of runs by each metric (default: all); also return a note for each metric left out.

    Raises ConfigError for runs on different questions, duplicate runs, or a metric that no run has.
    """
    _check(runs, metrics, resamples)
    by_metric: dict[str, list[tuple[str, str, ComparisonRow]]] = {}
    notes: dict[str, None] = {}
    names = run_names([run.folder for run in runs])
    for (a, run_a), (b, run_b) in combinations(zip(names, runs, strict=True), 2):
        rows, left_out = paired.compare(run_a, run_b, resamples, metrics)
        for row in rows:
            by_metric.setdefault(row.metric, []).append((a, b, row))
        notes |= dict.fromkeys(left_out)
    pairs = []
    for compared in by_metric.values():
        adjusted = holm([row.p for _, _, row in compared])
        pairs += [Pair(*item, p_holm) for item, p_holm in zip(compared, adjusted, strict=True)]
    return pairs, list(notes)


def table(pairs: Sequence[Pair], named: bool = True) -> Table:
    """Return a table with one row per comparison; `named` adds the names of the runs and the adjusted p-value."""
    rows = Table.of([pair.row for pair in pairs], ComparisonRow)
    if not named:
        return rows
    lines = [(pair.a, pair.b, *row, pair.p_holm) for pair, row in zip(pairs, rows.rows, strict=True)]
    return Table(("run_a", "run_b", *rows.header, "p_holm"), lines)
