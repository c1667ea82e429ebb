"""The report's figures: scores over k, scores over lag, expected wins over the share of the source read.

Each is written as PDF and PNG with the drawn numbers as CSV beside it.  Bands and bars are the 95% intervals over
questions from the runs' own reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sqa.core.answers import is_right
from sqa.core.errors import ConfigError, NotComputable, SqaError
from sqa.core.k import FULL, order
from sqa.core.packages import need
from sqa.core.significance import Interval, bootstrap_band, mean_curve, means
from sqa.core.trace import QuestionTrace
from sqa.metrics.qa import curve_named, log_reciprocal_rank
from sqa.pipeline.folder import open_run
from sqa.pipeline.parts import Parts
from sqa.report.data import Gap, Reported, described, one_line
from sqa.report.plots import PAGE, Drawn, Line, Panel, finish, lines, over_k
from sqa.results import Frame, Table

if TYPE_CHECKING:
    from sqa.report.plots import Figure

PANELS = (("ew", "expected wins (EW)"), ("oracle-ew", "oracle EW"), ("bleu", "BLEU"))  # metric, y axis
LAGS = (("dal", "DAL"), ("laal", "LAAL"), ("al", "AL"))  # the x axis shows the lag that most runs have
BINS = 20  # number of positions at which expected wins are drawn
CURVE = "qanta2018"
FLOOR = -4.0  # log reciprocal rank of an answer that is not in the list
Series = Mapping[str, Sequence[Reported]]  # name in the legend -> runs, in the order of k


def draw_all(group: Sequence[Reported], folder: Path, suffix: str) -> tuple[list[Drawn], list[Gap]]:
    """Draw the figures of runs on the same questions; return them, and the reasons for missing ones."""
    figures: list[Drawn] = []
    gaps: list[Gap] = []
    try:
        need("matplotlib", "drawing")
    except ConfigError as error:
        return figures, [Gap("figures", (), str(error))]
    series, here = series_of(group), tuple(run.label for run in group)
    for part in (_over_k, _over_lag, _over_source):
        for result in part(group, series, folder, suffix):
            if isinstance(result, Gap):
                gaps.append(result._replace(runs=result.runs or here))
            else:
                figures.append(result)
    return figures, gaps


def series_of(group: Sequence[Reported]) -> dict[str, list[Reported]]:
    """Group the runs that differ only in k; name groups after their translator, and guesser and buzzer if needed."""
    families: dict[str, list[Reported]] = {}
    for run in group:
        families.setdefault(run.family, []).append(run)
    parts = {}
    for key, runs in families.items():
        config = runs[0].saved.config
        parts[key] = [described(config.translator, "k"), described(config.guesser), described(config.buzzer)]
    telling = [i for i, each in enumerate(zip(*parts.values(), strict=True)) if i == 0 or len(set(each)) > 1]
    names = {key: _legend(", ".join(parts[key][i] for i in telling)) for key in parts}
    if len(set(names.values())) < len(names):
        names = {key: _legend(runs[0].label) for key, runs in families.items()}
    return {names[key]: sorted(runs, key=lambda run: order(run.k or "")) for key, runs in families.items()}


def _dataset(group: Sequence[Reported]) -> str:
    return Path(group[0].saved.config.dataset.name).name


# ----------------------------------------------------------------------------------------- scores over k or lag


def _frame(series: Series) -> Frame:
    """Return the rows of all runs that have a value.

    The BLEU of the reference translation itself, 100, is left out because it would flatten the axis.
    """
    rows = [
        replace(row, cell=(name, run.label, str(run.k or run.label)))
        for name, runs in series.items()
        for run in runs
        for row in run.rows.values()
        if row.value is not None and not (row.unit == "0-100" and row.low == row.value == 100)
    ]
    return Frame(("series", "run", "k"), tuple(rows))


def _over_k(group: Sequence[Reported], series: Series, folder: Path, suffix: str) -> list[Drawn | Gap]:
    sweeps = {name: runs for name, runs in series.items() if len({run.k for run in runs} - {None}) > 1}
    frame = _frame(sweeps)
    panels = _panels(frame)
    if not panels:
        why = "the runs have none of its metrics" if sweeps else "no two runs differ only in k"
        return [Gap("figure over k", (), why)]
    draw = partial(over_k, [panels], "k (source words read first)", 2.0, PAGE)
    title = f"Scores over k, {_dataset(group)}"
    caption = f"Bands: 95% intervals over {len(group[0].saved.questions)} questions."
    return [finish(draw, folder, f"over_k{suffix}", title, caption, _numbers(frame))]


def _over_lag(group: Sequence[Reported], series: Series, folder: Path, suffix: str) -> list[Drawn | Gap]:
    if len(group) < 2:
        return [Gap("figure over lag", (), "a single run has a single lag; give several runs")]
    frame = _frame(series)
    lag, name = max(LAGS, key=lambda item: len(frame.where(item[0])))  # the first one if several are equal
    having = {row["run"] for row in frame.where(lag)}
    panels = _panels(frame, lag)
    if len(having) < 2 or not panels:
        return [Gap("figure over lag", (), "fewer than two runs have a lag and a score")]
    draw = partial(over_k, [panels], f"lag ({name}, source words)", 2.0, PAGE, bars=True)
    title = f"Scores over lag, {_dataset(group)}"
    caption = f"Bars: 95% intervals over {len(group[0].saved.questions)} questions; a number at a point is its k."
    left = [run.label for run in group if run.label not in having]
    caption += f" Without a lag: {', '.join(left)}." if left else ""
    return [finish(draw, folder, f"over_lag{suffix}", title, caption, _numbers(frame, lag))]


def _panels(frame: Frame, lag: str = "") -> list[Panel]:
    """Return a panel for each metric that some run has, with a line for each series over k or over a lag."""
    names, over = frame.values("series"), frame.where(lag) if lag else None
    drawn = {label: frame.where(metric) for metric, label in PANELS}
    return [Panel(label, lines(rows, "series", "k", names, over=over)) for label, rows in drawn.items() if rows]


def _numbers(frame: Frame, *more: str) -> Table:
    """Return the drawn numbers, one row for each run and metric."""
    metrics = [*more, *(metric for metric, _ in PANELS)]
    rows = [(*row.cell, row.metric, row.value, row.low, row.high) for row in frame.rows if row.metric in metrics]
    return Table((*frame.columns, "metric", "value", "low", "high"), rows)


def _legend(name: str) -> str:
    """Return a name for a legend: matplotlib drops names that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


# ----------------------------------------------------------------------------------- expected wins over the source


def wins_at(trace: QuestionTrace, bins: int = BINS) -> np.ndarray:
    """Return EW, of shape (bins,), of answering with the top guess after 1/bins, 2/bins, ..., 1 of the source.

    Shares of the source are measured in characters.
    """
    ends = np.arange(1, bins + 1) / bins
    # `fraction` never decreases; 1e-9 covers its rounding
    newest = np.searchsorted(trace.fraction, ends + 1e-9, side="right") - 1  # -1: nothing was written yet
    right = {step: _right(trace, step) for step in set(newest.tolist())}
    return np.where([right[step] for step in newest.tolist()], curve_named(CURVE)(ends), 0.0)


def log_ranks_at(trace: QuestionTrace, bins: int = BINS) -> np.ndarray:
    """Return the answer's log reciprocal rank, of shape (bins,), as in `wins_at`; FLOOR before the first step."""
    ends = np.arange(1, bins + 1) / bins
    logs = np.concatenate([[FLOOR], log_reciprocal_rank(trace.rank, floor=FLOOR)])  # (steps + 1,)
    values: np.ndarray = logs[np.searchsorted(trace.fraction, ends + 1e-9, side="right")]
    return values


def _right(trace: QuestionTrace, step: int) -> bool:
    """Return whether the top guess at a step is right, without checking all steps as `trace.correct` does."""
    guesses = trace.guesses[step] if trace.guesses and step >= 0 else ()
    return bool(guesses) and is_right(guesses[0].page, trace.question.page)


def _over_source(group: Sequence[Reported], series: Series, folder: Path, suffix: str) -> list[Drawn | Gap]:
    bands: dict[str, list[Interval]] = {}
    gaps: list[Drawn | Gap] = []
    parts = Parts()
    for run in group:
        try:
            if run.saved.config.guesser is None:
                raise NotComputable("no guesser ran")
            values = np.array([wins_at(trace) for trace in open_run(run.saved.folder, parts).traces])
        except SqaError as error:
            gaps.append(Gap("expected wins over the source read", (run.label,), one_line(str(error))))
            continue
        bands[run.label] = bootstrap_band(means(values), mean_curve, seed=run.saved.config.seed)
    if not bands:
        return gaps
    drawn = [(name, [run for run in runs if run.label in bands]) for name, runs in series.items()]
    panels = {name: {_k(run): bands[run.label] for run in runs} for name, runs in drawn if len(runs) > 1}
    if single := {name: bands[runs[0].label] for name, runs in drawn if len(runs) == 1}:
        panels["other runs" if panels else "all runs"] = single
    title = f"Expected wins over the source read, {_dataset(group)}"
    caption = (
        f"Expected wins if every question were answered at this point (curve {CURVE}): the mean over "
        f"{len(group[0].saved.questions)} questions, with its 95% band."
    )
    numbers = [
        (label, f"{i / BINS:g}", point.value, point.low, point.high)
        for label, band in bands.items()
        for i, point in enumerate(band, start=1)
    ]
    table = Table(("run", "source_read", "ew", "low", "high"), numbers)
    draw = partial(_source_figure, panels)
    return [finish(draw, folder, f"over_source{suffix}", title, caption, table), *gaps]


def _k(run: Reported) -> str:
    return "full input" if run.k == FULL else f"k = {run.k}"


def _source_figure(panels: Mapping[str, Mapping[str, Sequence[Interval]]]) -> Figure:
    """Draw a panel for each series of several runs, and one for the other runs."""
    x = {str(i): 100 * i / BINS for i in range(1, BINS + 1)}
    drawn = []
    for title, bands in panels.items():
        by_name = [(name, dict(zip(x, band, strict=True))) for name, band in bands.items()]
        drawn.append(Panel(title, [Line(name, i, by_bin, x=x) for i, (name, by_bin) in enumerate(by_name)]))
    columns = min(2, len(drawn))
    grid = [drawn[start : start + columns] for start in range(0, len(drawn), columns)]
    width = PAGE if columns > 1 else 0.7 * PAGE
    return over_k(grid, "source read (% of its characters)", 2.3, width, ylabel="expected wins if answered here")
