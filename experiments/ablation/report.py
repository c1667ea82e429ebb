"""`sqa ablation CONFIG`: expected wins, accuracy, BLEU and lag over k, on real questions (`make reproduce`).

The figures follow Figure 3 of Han, Carpuat and Boyd-Graber (2022).  In that figure, BLEU grows with k and flattens,
expected wins rises, peaks and falls, and oracle expected wins peaks earlier.  differences.tsv tests these claims on
the runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.grid import AblationConfig, finished
from experiments.ladders import Ladder, differences, ladders
from experiments.outputs import Outputs
from experiments.paper.figure3 import PANELS, drawn_over, every_k
from experiments.studies import training
from sqa.api.experiment import COLUMNS, Result, Results
from sqa.pipeline.engine import EMPTY_SENTENCES
from sqa.pipeline.overrides import load_study
from sqa.pipeline.saving import UNKNOWN_PAGES
from sqa.report import plots
from sqa.results import Frame, Table, show

MOST_LINES = 7  # maximum number of translators in one figure
PEAK = ["data set", "translator", "contestant", "best k", "EW", "at the smallest k", "at the largest k"]


def main(config_path: Path, runs: Path, words: Sequence[str] = (), workers: int | None = None) -> None:
    """Compute missing runs, write the table, differences, figures and report, and print the peaks of EW."""
    config = load_study(config_path, AblationConfig, words)
    config = config if workers is None else replace(config, workers=workers)
    rows = finished(config, runs)
    once = Results(row for row in rows if row.cell.seed is None)
    frame, lines, outputs = once.frame, ladders(once), Outputs(runs / config.name)
    outputs.rows("table.csv", COLUMNS, rows.frame.rows)
    outputs.differences((row for ladder in lines for row in differences(ladder)), show=False)
    show(Table(PEAK, [peak(ladder) for ladder in lines if "ew" in ladder.metrics], {"EW": 3}))
    report = ["# Expected wins and translation quality over k"]
    for dataset in dict.fromkeys(row.cell.dataset for row in rows):
        report += ["", f"## {title(dataset, config)}", ""]
        drawn = list(dict.fromkeys(ladder.translator for ladder in lines if ladder.dataset == dataset))[:MOST_LINES]
        if drawn and any(frame.where(metric, dataset=dataset) for metric, _ in PANELS):
            stem = f"figure3_{Path(dataset).name}"
            outputs.picture(stem, figure, frame, dataset, drawn, title(dataset, config))
            report += [f"![{dataset}]({stem}.png)", ""]
        report += tables(frame, [row for row in rows if row.cell.dataset == dataset])
    outputs.write("report.md", "\n".join(report) + "\n")
    if len(once) < len(rows):
        outputs.rows("seeds.csv", training.COLUMNS, training.rows_of(rows, config.resamples))
    outputs.end()


def peak(ladder: Ladder) -> list[Any]:
    """Return the row of PEAK for a translator: EW at the best, the smallest and the largest k."""
    scores = ladder.scores("ew")
    best = int(np.argmax(scores))
    ends = (f"{scores[i]:.3f} (k = {ladder.ks[i]})" for i in (0, -1))
    return [ladder.dataset, ladder.translator, ladder.contestant, str(ladder.ks[best]), float(scores[best]), *ends]


def title(dataset: str, config: AblationConfig) -> str:
    """Return the title of a data set, which also names the data sets that it replaces."""
    instead = "" if dataset in config.datasets else f", in place of {' and '.join(config.datasets)}"
    return f"{Path(dataset).name}{instead}"


def figure(frame: Frame, dataset: str, translators: Sequence[str], above: str) -> plots.Figure:
    """Draw a data set's figure: a row of panels for each contestant."""
    contestants = dict.fromkeys(row["contestant"] for row in frame.where(dataset=dataset))
    return drawn_over(
        frame, [(dataset, contestant, contestant) for contestant in contestants], translators, title=above
    )


def tables(frame: Frame, rows: Sequence[Result]) -> Iterator[str]:
    """Yield the table of each contestant on a data set, then the numbers of unknown answers and empty translations."""
    unknown = {row.cell.contestant: row.saved.counts.get(UNKNOWN_PAGES) for row in rows}
    for contestant in unknown:
        yield from (f"Answered by {contestant}:", "", *every_k(rows[0].cell.dataset, contestant)(frame), "")
    yield f"{len(rows[0].saved.questions)} questions; 95% intervals over questions."
    for guesser, pages in unknown.items():
        if pages is not None:
            yield f"{pages} of the answer pages are unknown to {guesser}; those questions count as wrong."
    empty = [(row.cell, empty) for row in rows if (empty := row.saved.counts[EMPTY_SENTENCES])]
    shown = dict.fromkeys(f"{cell.translator} k={cell.k}: {n}" for cell, n in empty)
    yield f"Sentences with an empty translation: {', '.join(shown) or 'none'}."
