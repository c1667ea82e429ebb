"""Figures 7 and 10: expected wins, oracle expected wins and accuracy over k, one line per guesser.

    sqa reproduce fig7        # Polish
    sqa reproduce fig10       # Spanish

Claims, after Han, Carpuat and Boyd-Graber (2022).  For each guesser EW rises, peaks and falls with k.  Oracle EW
peaks at a smaller k than EW.  Full input has lower EW than the best k and higher accuracy than the smallest k.  Any
two guessers rank the k similarly (Kendall's tau over k).  The differences are printed and written next to the figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from experiments.lab.ledger import Row, row_of
from experiments.ladders import POOLED, differences, ladders
from experiments.outputs import Outputs
from experiments.paper.wait_k_runs import WAIT_K, Runs, nameable, runs_of
from sqa.api.experiment import COLUMNS, Result, Results
from sqa.core.significance import bootstrap_band
from sqa.report import plots

PANELS = {"ew": "expected wins (EW)", "oracle-ew": "oracle EW", "accuracy": "accuracy"}  # metric -> title


def main(config_path: Path, runs: Path) -> None:
    """Write numbers, figures and differences of Figure 7 or 10; print the differences."""
    grid = runs_of(config_path, runs, list(PANELS))
    config = grid.config
    grid = grid if config.questions == "all" else matched(grid)
    outputs = Outputs(runs / config.name)
    for dataset in grid.datasets:
        stem, rows = f"{config.name}_{Path(dataset).name}", over_k(grid, dataset)
        outputs.rows(f"{stem}.csv", COLUMNS, rows)
        outputs.picture(stem, by_guesser, rows, config.questions)
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
    for ladder in ladders(grid.results):
        if ladder.dataset != POOLED:
            yield from differences(ladder)
    for dataset in grid.datasets:
        for a, b in combinations(grid.contestants, 2):
            for metric in PANELS:
                rows = [row for g in (a, b) for row in grid.of(dataset, g) if row.cell.family == WAIT_K]
                stats = np.hstack([row.stats[metric] for row in rows])  # (n, 4 K)
                [tau] = bootstrap_band(stats, agreement, grid.base.resamples, grid.base.seed)
                claim = f"the guessers order the k alike by {metric} (Kendall's tau)"
                cell = (dataset, WAIT_K, f"{a}, {b}", claim, f"{len(rows) // 2} k")
                yield row_of(cell, "tau", tau)


def over_k(grid: Runs, dataset: str) -> list[Row]:
    """Return the rows of the figure: each guesser's metrics for wait-k at every k and for the human translation."""
    rows = (row for contestant in grid.contestants for row in grid.of(dataset, contestant).frame.rows)
    return [row for row in rows if row.metric in PANELS]


def by_guesser(rows: Sequence[Row], which: str) -> plots.Figure:
    """Draw one data set's Figure 7: a panel for each metric, a line with a band for each guesser."""
    panels = []
    for metric, name in PANELS.items():
        of_metric = [row for row in rows if row.metric == metric]
        human = {row["contestant"]: row for row in of_metric if row["translator"] == "reference"}
        translated = [row for row in of_metric if row["translator"] != "reference"]
        lines = plots.lines(translated, "contestant", "k")
        panels.append(plots.Panel(name, [line._replace(human=human[line.label]) for line in lines]))
    kind = "questions" if which == "all" else "questions with a matched answer"
    title = f"{rows[0]['dataset']}, {rows[0].n} {kind}, 95% bands"
    return plots.over_k([panels], "k (source words read first); dotted: the human translation", 2.4, title=title)
