"""Pairwise comparison of several runs: differences corrected for multiple tests, as table, picture and LaTeX.

    sqa compare RUN RUN RUN... --metric ew --metric bleu --output compared

The p-values are from approximate randomisation over questions (sqa/core/differences.py).  For each metric, `p_holm`
is adjusted for all pairs of runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, product
from pathlib import Path
from typing import TYPE_CHECKING

from sqa.core.differences import holm
from sqa.core.errors import ConfigError
from sqa.core.registry import did_you_mean
from sqa.files.atomic import write_text
from sqa.pipeline import paired, saving
from sqa.pipeline.folder import RunFolder
from sqa.pipeline.paired import ComparisonRow
from sqa.report.data import check_distinct, run_names
from sqa.report.plots import COLOURS, canvas, save, style
from sqa.results import Table, booktabs, latex_escaped

if TYPE_CHECKING:
    from sqa.report.plots import Axes

ALPHA = 0.05


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


def write(pairs: Sequence[Pair], folder: Path) -> list[Path]:
    """Write comparisons.tsv, significance.tex, and for each metric significance_<metric>.pdf and .png."""
    tsv, latex = folder / "comparisons.tsv", folder / "significance.tex"
    write_text(tsv, table(pairs).to_tsv())
    groups = [list(group) for _, group in groupby(pairs, key=lambda pair: pair.row.metric)]
    write_text(latex, "\n".join(map(_latex, groups)))
    return [tsv, latex, *(path for group in groups for path in draw(group, folder))]


def _matrix(pairs: Sequence[Pair]) -> tuple[list[str], dict[tuple[str, str], tuple[float, float]]]:
    """Return the runs' names, and a dict that maps (row, column) to (row minus column, adjusted p-value)."""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.a, pair.b)))
    cells = dict.fromkeys(product(names, names), (math.nan, 1.0))
    cells |= {(pair.a, pair.b): (pair.row.diff, pair.p_holm) for pair in pairs}
    cells |= {(pair.b, pair.a): (-pair.row.diff, pair.p_holm) for pair in pairs}
    return names, cells


def _text(pairs: Sequence[Pair], diff: float) -> str:
    """Return a difference as text, with three decimal places if the runs' values are at most 1, else with one."""
    return f"{diff:+.{3 if max(max(abs(pair.row.a), abs(pair.row.b)) for pair in pairs) <= 1 else 1}f}"


# ------------------------------------------------------------------------------------------------- LaTeX and picture


def _latex(pairs: Sequence[Pair]) -> str:
    """Return a LaTeX table of row minus column, with significant differences (Holm) in bold."""
    names, cells = _matrix(pairs)
    metric, n = pairs[0].row.metric, pairs[0].row.n
    rows = [[latex_escaped(metric), *map(latex_escaped, names)]]
    for a in names:
        row = [latex_escaped(a)]
        for b in names:
            diff, p = cells[a, b]
            text = _text(pairs, diff)
            row.append("--" if a == b else f"$\\mathbf{{{text}}}$" if p < ALPHA else f"${text}$")
        rows.append(row)
    title = f"% {metric}: row minus column, {n} questions; bold: p < {ALPHA:g} by approximate randomisation, Holm over"
    return f"{title} {len(pairs)} pairs\n{booktabs(rows, 'l' + 'r' * len(names))}"


def draw(pairs: Sequence[Pair], folder: Path) -> list[Path]:
    """Draw the matrix of one metric as PDF and PNG: row minus column, coloured if significant (Holm)."""
    names, _ = _matrix(pairs)
    side = 0.55 * len(names)
    with style():
        figure, [[axes]] = canvas((side + 2.2, side + 1.4))
        _cells(axes, pairs)
        metric, n = pairs[0].row.metric, pairs[0].row.n
        label = f"p < {ALPHA:g} after Holm over {len(pairs)} pairs"
        axes.set_title(f"{metric}, row minus column, {n} questions\ncoloured: {label}", loc="left")
        return save(figure, folder, "significance_" + re.sub(r"[^\w.-]", "_", metric))


def _cells(axes: Axes, pairs: Sequence[Pair]) -> None:
    """Draw a square for each pair of runs, with their difference."""
    names, cells = _matrix(pairs)
    for (y, a), (x, b) in product(enumerate(names), enumerate(names)):
        diff, p = cells[a, b]
        sure = p < ALPHA
        colour = (COLOURS[0] if diff > 0 else COLOURS[1]) if sure else "white"
        axes.bar(x, 1, 1, y - 0.5, facecolor=colour, edgecolor="#cccccc", linewidth=0.4)
        if a != b:
            text = {"ha": "center", "va": "center", "fontsize": 6, "color": "white" if sure else "black"}
            axes.text(x, y, _text(pairs, diff), text)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
