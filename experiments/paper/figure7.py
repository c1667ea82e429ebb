"""Figures 7 and 10: expected wins, oracle expected wins and accuracy over k, one line per guesser.

Each translator of the config has a row of panels.  A translator with several trainings is drawn as their mean, with
one standard deviation as its band.

    sqa reproduce fig7        # Polish
    sqa reproduce fig10       # Spanish

Claims, after Han, Carpuat and Boyd-Graber (2022).  For each guesser EW rises, peaks and falls with k.  Oracle EW
peaks at a smaller k than EW.  Full input has lower EW than the best k and higher accuracy than the smallest k.  Any
two guessers rank the k similarly (Kendall's tau over k).  The differences are printed and written next to the figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np

from experiments.outputs import Outputs
from experiments.over_k import POOLED, all_series, differences
from experiments.paper.figure3 import BANDS, OVER_K, panel_over_k
from experiments.paper.wait_k_runs import Runs, nameable, runs_of
from experiments.results_book.ledger import Row, row_of
from sqa.api.experiment import Result, Results
from sqa.core import bootstrap_band
from sqa.report import plots
from sqa.results import Frame

PANELS = {"ew": "expected wins (EW)", "oracle-ew": "oracle EW", "accuracy": "accuracy"}  # metric -> title


def main(config_path: Path, runs: Path) -> None:
    """Write numbers, figures and differences of Figure 7 or 10; print the differences."""
    grid = runs_of(config_path, runs, list(PANELS))
    config = grid.config
    grid = grid if config.questions == "all" else matched(grid)
    outputs = Outputs(runs / config.name)
    for dataset in grid.datasets:
        stem, frame = f"{config.name}_{Path(dataset).name}", grid.of(dataset).systems
        outputs.rows(f"{stem}.csv", replace(frame, rows=[row for row in frame.rows if row.metric in PANELS]))
        outputs.picture(stem, by_guesser, frame, grid.contestants, config.questions)
    outputs.differences(of_guessers(grid), grid.left_out)
    outputs.end()


def matched(grid: Runs) -> Runs:
    """Return the results restricted to the questions whose answer at least one of the guessers can name."""
    config, parts = grid.config, grid.parts
    guessers = [contestant.guesser for contestant in config.contestants if contestant.label in grid.contestants]
    masks = {}
    for dataset in grid.datasets:
        questions = parts.questions(grid.of(dataset)[0].cell.config.dataset)
        masks[dataset] = nameable(guessers, questions, config.questions, parts)

    def only(each: Result) -> Result:
        mask, saved = masks[each.dataset], each.saved
        stats = {name: values[mask] for name, values in saved.stats.items()}
        signatures = {name: saved.signatures[name] for name in PANELS}
        return replace(each, saved=replace(saved, stats=stats, signatures=signatures))

    return grid._replace(results=Results(map(only, grid.results)))


def agreement(stats: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-a between two guessers over K values of k, of shape (B, 1), for `bootstrap_band`.

    `stats` has shape (B, 4 K): sum and count at each k for the first guesser, then for the second.  A tie counts as
    neither concordant nor discordant.
    """
    values = (stats[:, 0::2] / stats[:, 1::2]).reshape(len(stats), 2, -1)  # (B, 2, K)
    first, other = np.triu_indices(values.shape[2], 1)
    signs = np.sign(values[:, :, first] - values[:, :, other])  # (B, 2, pairs)
    return (signs[:, 0] * signs[:, 1]).mean(axis=1, keepdims=True)


def of_guessers(grid: Runs) -> Iterator[Row]:
    """Yield Figure 7's claims on every data set."""
    for series in all_series(grid.results):
        if series.dataset != POOLED:
            yield from differences(series)
    for dataset, label in product(grid.datasets, grid.labels):
        for (a, b), metric in product(combinations(grid.contestants, 2), PANELS):
            rows = [[row for row in grid.of(dataset, g, label) if row.cell.family == label] for g in (a, b)]
            ks = list(dict.fromkeys(row.cell.k for row in rows[0]))
            if len(ks) > 1:
                means = [np.mean([r.stats[metric] for r in of if r.cell.k == k], axis=0) for of in rows for k in ks]
                [tau] = bootstrap_band(np.hstack(means), agreement, grid.base.resamples, grid.base.seed)  # (n, 4 K)
                claim = f"the guessers order the k alike by {metric} (Kendall's tau)"
                yield row_of((dataset, label, f"{a}, {b}", claim, f"{len(ks)} k"), "tau", tau)


def by_guesser(frame: Frame, contestants: Sequence[str], which: str) -> plots.Figure:
    """Draw one data set's figure: a row of panels for each translator, a panel for each metric, a line per guesser."""
    grid = []
    for label in (name for name in frame.values("translator") if name != "reference"):
        rows = {name: [r for r in frame.where(name) if r["translator"] in (label, "reference")] for name in PANELS}
        panels = [panel_over_k(title, rows[name], "contestant", contestants) for name, title in PANELS.items()]
        grid.append([panels[0]._replace(ylabel=label), *panels[1:]])
    kind = "questions" if which == "all" else "questions with a matched answer"
    return plots.over_k(grid, f"{OVER_K}\n{BANDS}", 2.4, title=f"{frame.rows[0]['dataset']}, {frame.rows[0].n} {kind}")
