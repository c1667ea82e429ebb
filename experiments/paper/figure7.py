"""Figures 7 (Polish) and 10 (Spanish): does the picture over k depend on who answers?  A line per guesser.

    sqa reproduce fig7
    sqa reproduce fig10

EW, oracle EW and accuracy over k.  The paper takes the questions whose answer its English training questions have; so
do we: those whose answer any of the guessers compared can name (`questions: matched`).

Claims, after Figure 7 of Han, Carpuat and Boyd-Graber (2022), which redraws Figure 3 for a recurrent, a transformer and
a retrieval guesser.  For each guesser: EW rises, peaks and falls with k; oracle EW peaks at a smaller k than EW; full
input has the worse EW and the better accuracy.  For each pair of guessers: they order the k alike (Kendall's tau over
k).  The differences are printed and written beside the figures.

Every number is of the questions of a run of `sqa ablation` with the same keys; a run that is in the store is not made
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from experiments.contestants import NamedContestant, Runs, check_labels, runs_of
from experiments.grid import workshop
from experiments.lab import curves, grid_rows
from experiments.lab.ledger import Row
from experiments.ladders import POOLED, differences, ladders
from experiments.made import Difference, Made, of_row
from experiments.paper.figure6 import nameable
from sqa import metrics as metric_names
from sqa.core.errors import ConfigError
from sqa.core.significance import bootstrap_band, bootstrap_many
from sqa.report.figure_style import save, style
from sqa.run.config import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments.grid import Row as GridRow
    from sqa.run.parts import Parts

PANELS = {"ew": "expected wins (EW)", "oracle-ew": "oracle EW", "accuracy": "accuracy"}  # metric -> title


@dataclass(frozen=True, slots=True)
class Figure7Config:
    """What `sqa reproduce fig7` and fig10 read; configs/figure7.yaml explains each key."""

    name: str  # of the folder, and what its files begin with
    ablation: Path
    contestants: tuple[NamedContestant, ...]
    language: str | None = None
    questions: Literal["matched", "all"] = "all"

    def __post_init__(self) -> None:
        problems = check_labels(self.contestants, "contestants")
        if problems:
            raise ConfigError(problems)


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig7`: run what the store lacks; numbers, figures and differences; the last on stdout."""
    config, parts = load(config_path, Figure7Config), workshop(runs).parts
    ablation = config_path.parent / config.ablation
    found = runs_of(config.contestants, ablation, runs, parts, list(PANELS), config.language)
    if config.questions == "matched":
        found = matched(found, config, parts)
    made = Made(runs / config.name)
    for dataset in found.datasets:
        stem, rows = f"{config.name}_{Path(dataset).name}", numbers(found, dataset)
        made.rows(f"{stem}.csv", grid_rows.COLUMNS, rows)
        with style():
            made.add(save(drawn(rows, config.questions), made.folder, stem))
    made.differences(differences_of(found), found.left_out)
    made.end()


def matched(found: Runs, config: Figure7Config, parts: Parts) -> Runs:
    """The same rows on the questions whose answer one of the guessers can name."""
    guessers = [one.guesser for one in config.contestants if one.label in found.labels.values()]
    rows = []
    for dataset in found.datasets:
        mine = [row for row in found.rows if row.cell.dataset == dataset]
        mask = nameable(guessers, parts.questions(mine[0].cell.run.dataset), config.questions, parts)
        rows += [_only(row, mask, found) for row in mine]
    return found._replace(rows=rows)


def _only(row: GridRow, mask: np.ndarray, found: Runs) -> GridRow:
    """A row of some of its questions, with intervals over these."""
    stats = {name: values[mask] for name, values in row.stats.items()}
    known = [stats[name] for name in PANELS]
    intervals = bootstrap_many(known, metric_names.build(PANELS), found.config.resamples, found.config.seed)
    return replace(row, n=int(mask.sum()), stats=stats, intervals=dict(zip(PANELS, intervals, strict=True)))


# --------------------------------------------------------------------------------------------------- differences


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's tau (a) of two guessers' values over K values of k: a curve of one point, for `bootstrap_band`.

    stats (n, 4 K): sum and count of each k for the first guesser, then for the second.
    """

    name: str = "agreement"

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        """(B, 4 K) -> (B, 1), -1 to 1; a tie counts for neither side."""
        values = (stats[:, 0::2] / stats[:, 1::2]).reshape(len(stats), 2, -1)  # (B, 2, K)
        one, other = np.triu_indices(values.shape[2], 1)
        signs = np.sign(values[:, :, one] - values[:, :, other])  # (B, 2, pairs)
        return (signs[:, 0] * signs[:, 1]).mean(axis=1, keepdims=True)


def differences_of(found: Runs) -> Iterator[Difference]:
    """Every claim of the docstring on every data set, with labels for the guessers' names."""
    resamples, seed = found.config.resamples, found.config.seed
    for ladder in ladders(found.rows):
        if ladder.dataset != POOLED:
            yield from (of_row(row, found.labels[ladder.contestant]) for row in differences(ladder))
    for dataset in found.datasets:
        for a, b in combinations(found.labels, 2):
            who = f"{found.labels[a]}, {found.labels[b]}"
            for metric in PANELS:
                rows = (*found.of(dataset, a), *found.of(dataset, b))
                stats = np.hstack([row.stats[metric] for row in rows])  # (n, 4 K)
                band = bootstrap_band(stats, Agreement(), resamples, seed)
                tau, low, high = float(band.value[0]), float(band.low[0]), float(band.high[0])
                claim = f"the guessers order the k alike by {metric} (Kendall's tau)"
                yield Difference(dataset, "wait-k", who, claim, f"{len(rows) // 2} k", tau, low, high, len(stats))


# -------------------------------------------------------------------------------------------- numbers and figure


def numbers(found: Runs, dataset: str) -> list[Row]:
    """What is drawn: of each guesser the metrics of wait-k at every k and of the human translation."""
    named = [
        replace(row, cell=replace(row.cell, guesser=label))
        for guesser, label in found.labels.items()
        for row in (*found.of(dataset, guesser), *found.of(dataset, guesser, "reference"))
    ]
    return [row for row in grid_rows.rows_of(named) if row.metric in PANELS]


def drawn(rows: Sequence[Row], which: str) -> Figure:
    """One data set's figure: a panel for each metric, a line with its band for each guesser, dotted its value for the
    human translation."""
    panels = []
    for metric, name in PANELS.items():
        lines = []
        for look, guesser in enumerate(dict.fromkeys(row.cell[3] for row in rows)):
            *waiting, human = [row for row in rows if (row.metric, row.cell[3]) == (metric, guesser)]
            lines.append(curves.Line(guesser, look, {row.cell[2]: row for row in waiting}, human))
        panels.append(curves.Panel(name, lines))
    figure = curves.over_k([panels], "k (source words read first); dotted: the human translation", 2.4)
    kind = "questions" if which == "all" else "questions with a matched answer"
    figure.suptitle(f"{rows[0].cell[0]}, {rows[0].n} {kind}, 95% bands", fontsize=8)
    return figure
