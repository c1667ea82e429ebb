"""`sqa ablation CONFIG`: expected wins, accuracy, quality and lag over k, on real questions (`make reproduce`).

The figures follow Figure 3 of Han, Carpuat and Boyd-Graber (2022): a row of panels of answers (3a) for each
contestant, then one row of panels of translation quality (3b).  Full-input systems and the human translation are
horizontal lines.  A system with several trainings is drawn as their mean, with one standard deviation as its band.
In the paper, BLEU grows with k and flattens, expected wins rises, peaks and falls, and oracle expected wins peaks
earlier.  differences.tsv tests these claims on the runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from experiments.grid import AblationConfig, finished, following, left_out
from experiments.outputs import Outputs
from experiments.over_k import OverK, all_series, differences
from experiments.paper.figure3 import axis_of_k, in_colours, panel_over_k
from experiments.results_book.tables import number
from experiments.studies import training
from sqa.api.experiment import Result, Results
from sqa.metrics import parse
from sqa.pipeline import load_study, paired
from sqa.pipeline.engine import EMPTY_SENTENCES
from sqa.pipeline.saving import UNKNOWN_PAGES
from sqa.report import plots
from sqa.results import NOTHING, Frame, Row, Table, markdown, show

PANELS = ("ew", "oracle-ew", "accuracy", "bleu")  # panels of a config without `panels`, then those of its `quality`
PEAK = ["data set", "translator", "trainings", "contestant", "best k", "EW", "at the smallest k", "at the largest k"]


class Panels(NamedTuple):
    """Metrics in the figures and tables, each with its label."""

    answers: Mapping[str, str]  # measured for each contestant
    texts: Mapping[str, str]  # the same for all contestants
    xlabel: str


def main(config_path: Path, runs: Path, words: Sequence[str] = (), workers: int | None = None) -> None:
    """Compute missing runs, write the tables, differences, figures and report, and print the peaks of EW."""
    config = following(load_study(config_path, AblationConfig, words), words, workers)
    Thread(target=plots.load, daemon=True).start()  # while the workers compute
    rows = finished(config, runs)
    frame, lines, outputs, panels = rows.systems, all_series(rows), Outputs(runs / config.name), panels_of(config, rows)
    gone = left_out(config, rows)
    outputs.rows("table.csv", rows.frame)
    outputs.rows("systems.csv", frame)
    outputs.differences((row for series in lines for row in differences(series)), gone, show=False)
    if peaks := [peak(series) for series in lines if "ew" in series.metrics]:
        show(Table(PEAK, peaks, {"EW": 3}))
    report = ["# Expected wins and translation quality over k"]
    for dataset in dict.fromkeys(row.cell.dataset for row in rows):
        report += ["", f"## {title(dataset, config)}", ""]
        if any(frame.where(metric, dataset=dataset) for metric in (*panels.answers, *panels.texts)):
            stem = f"{'figure3' if config.contestants else config.name}_{Path(dataset).name}"
            outputs.picture(stem, figure, frame, dataset, panels, title(dataset, config))
            report += [f"![{dataset}]({stem}.png)", ""]
        of_dataset = [row for row in rows if row.cell.dataset == dataset]
        lacking = list(missing(of_dataset, panels))
        print(*(f"{line}\n" for line in lacking), sep="", end="", file=sys.stderr)
        report += [text for line in lacking for text in (line, "")] + [*tables(frame, of_dataset, panels)]
    report += [f"Left out: {out.label}: {out.reason}" for out in gone]
    outputs.write("report.md", "\n".join(report) + "\n")
    if any(row.cell.seed is not None for row in rows):
        outputs.rows("seeds.csv", Frame(training.COLUMNS, tuple(training.rows_of(rows, config.resamples))))
    outputs.end()


def panels_of(config: AblationConfig, rows: Results) -> Panels:
    """Return the metrics of the config's panels."""
    entries = {entry.name for entry in config.quality}
    names = config.panels or [name for name in PANELS if name in config.metrics] + [e.name for e in config.quality]
    answers: dict[str, str] = {}
    texts: dict[str, str] = {}
    for name in names:
        measuring = next((row.saved for row in rows if name in row.saved.signatures), None)
        metric: Any = parse(name) if measuring is None and name not in entries else None
        if measuring is not None:
            [metric] = paired.metrics_of([name], measuring)
        kind = texts if name in entries or getattr(metric, "kind", "") != "answers" else answers
        kind[name] = getattr(metric, "label", name)
    return Panels(answers, texts, axis_of_k(config.translators))


def peak(series: OverK) -> list[Any]:
    """Return the row of PEAK for a translator: EW at the best, the smallest and the largest k."""
    scores = series.scores("ew")
    best = int(np.argmax(scores))
    ends = (f"{scores[i]:.3f} (k = {series.ks[i]})" for i in (0, -1))
    system = (series.dataset, series.translator, series.trainings, series.contestant)
    return [*system, str(series.ks[best]), float(scores[best]), *ends]


def title(dataset: str, config: AblationConfig) -> str:
    """Return the title of a data set, which also names the data sets that it replaces."""
    instead = "" if dataset in config.datasets else f", in place of {' and '.join(config.datasets)}"
    return f"{Path(dataset).name}{instead}"


def figure(frame: Frame, dataset: str, panels: Panels, above: str) -> plots.Figure:
    """Draw a data set's figure: a row of panels for each contestant, then a row of the metrics of texts."""
    of_dataset = Frame(frame.columns, tuple(frame.where(dataset=dataset)))
    names = in_colours(name for name in frame.values("translator") if name != "reference")
    contestants = of_dataset.values("contestant")
    grid = []
    for contestant in contestants if panels.answers else ():
        rows = {label: of_dataset.where(name, contestant=contestant) for name, label in panels.answers.items()}
        drawn = [panel_over_k(label, measured, "translator", names) for label, measured in rows.items() if measured]
        grid += [[drawn[0]._replace(ylabel=contestant), *drawn[1:]]] if drawn else []
    texts = {label: text_rows(of_dataset, name) for name, label in panels.texts.items()}
    drawn = [panel_over_k(label, measured, "translator", names) for label, measured in texts.items() if measured]
    return plots.over_k([*grid, *([drawn] if drawn else [])], panels.xlabel, title=above)


def text_rows(frame: Frame, metric: str) -> list[Row]:
    """Return the rows of a metric of texts, one for each system; the human translation is the reference itself."""
    rows = {row.cell[:3]: row for row in reversed(frame.where(metric)) if row["translator"] != "reference"}
    return list(reversed(rows.values()))


def missing(rows: Sequence[Result], panels: Panels) -> Iterator[str]:
    """Yield a line for each metric of a panel that some runs lack, with the reason of the first one."""
    for metric, label in {**panels.answers, **panels.texts}.items():
        lacking = [row for row in rows if metric not in row.rows]
        if lacking:
            names = "; ".join(f"{row.translator} k={row.k}, {row.guesser}" for row in lacking)
            runs = "every run" if len(lacking) == len(rows) else names
            reason = lacking[0].saved.refusals.get(metric, "the run does not measure it")
            yield f"Not in the figure: {label} of {runs}: {' '.join(reason.split())}."


def tables(frame: Frame, rows: Sequence[Result], panels: Panels) -> Iterator[str]:
    """Yield the tables of texts and of each contestant on a data set, and the numbers of unknown and empty texts."""
    dataset = rows[0].dataset
    unknown = {row.cell.contestant: row.saved.counts.get(UNKNOWN_PAGES) for row in rows}
    of_dataset = Frame(frame.columns, tuple(frame.where(dataset=dataset)))
    yield from ("Translations:", "", *table(of_dataset, {**panels.texts, "dal": "DAL"}), "")
    for contestant in unknown if panels.answers else ():
        answered = Frame(frame.columns, tuple(of_dataset.where(contestant=contestant)))
        yield from (f"Answered by {contestant}:", "", *table(answered, panels.answers), "")
    questions = len(rows[0].saved.ids)
    yield f"{questions} questions; intervals: 95% over questions; ±: one standard deviation over trainings."
    for guesser, pages in unknown.items():
        if pages is not None:
            yield f"{pages} of the answer pages are unknown to {guesser}; those questions count as wrong."
    empty = [(row.cell, empty) for row in rows if (empty := row.saved.counts[EMPTY_SENTENCES])]
    shown = dict.fromkeys(f"{cell.translator} k={cell.k}: {n}" for cell, n in empty)
    yield f"Sentences with an empty translation: {', '.join(shown) or 'none'}."


def table(frame: Frame, metrics: Mapping[str, str]) -> list[str]:
    """Return a Markdown table with a row for each translator at each k."""
    by_system: dict[tuple[str, str], dict[str, Row]] = {}
    for row in (row for row in frame.rows if row.metric in metrics):
        by_system.setdefault(row.cell[1:3], {}).setdefault(row.metric, row)
    lines = [
        [*system, next(iter(rows.values()))["trainings"], *(shown(rows.get(name)) for name in metrics)]
        for system, rows in by_system.items()
    ]
    return markdown(["translator", "k", "trainings", *metrics.values()], lines)


def shown(row: Row | None) -> str:
    """Return a value with its interval, or with its standard deviation over trainings."""
    if row is None or row.high is None or row["trainings"] == "1":
        return NOTHING if row is None else number(row)
    spread = replace(row, value=row.high - row.value)
    return f"{number(row, interval=False)} ± {number(spread, interval=False)}"
