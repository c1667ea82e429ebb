"""The report's figures: scores over k, scores over lag, expected wins over the share of the source read.

Each is written as PDF and PNG with the drawn numbers as CSV beside it.  Bands and bars are the 95% intervals over
questions from the runs' own reports.  For a system with several trainings, the line is the mean over trainings, the
band is one standard deviation, and the legend gives their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sqa.core import FULL, QuestionTrace, bootstrap_band, in_a_line, is_right, mean_curve, means, need, order
from sqa.core.errors import ConfigError, NotComputable, SqaError
from sqa.metrics.qa import curve_named, log_reciprocal_rank
from sqa.report.data import Gap, Reported, described, over_trainings, untrained
from sqa.report.plots import PAGE, Drawn, Panel, finish, lines, over_k
from sqa.results import Frame, Row, Table, row_of

if TYPE_CHECKING:
    from sqa.report.plots import Figure

PANELS = (  # metric, y axis
    ("ew", "expected wins (EW)"),
    ("oracle-ew", "oracle EW"),
    ("bleu", "BLEU"),
    ("answered", "questions answered"),
)
LAGS = (("dal", "DAL"), ("laal", "LAAL"), ("al", "AL"))  # the x axis shows the lag that most runs have
BINS = 20  # number of positions at which expected wins are drawn
CURVE = "qanta2018"
NO_K = "-"  # k of a translator without one
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
    """Group the runs that differ only in k and training; name groups after their translator, guesser and buzzer."""
    families: dict[str, list[Reported]] = {}
    for run in group:
        key, translator = run.family, run.saved.config.translator
        while any(other.saved.config.translator == translator for other in families.get(key, ())):
            key += "'"  # the same run again is no other training
        families.setdefault(key, []).append(run)
    parts = {}
    for key, runs in families.items():
        config = runs[0].saved.config
        name = described(config.translator, "k")
        name = untrained(name) if len(runs) > len({run.k for run in runs}) else name
        parts[key] = [name, described(config.guesser), described(config.buzzer)]
    telling = [i for i, each in enumerate(zip(*parts.values(), strict=True)) if i == 0 or len(set(each)) > 1]
    names = {key: _legend(", ".join(parts[key][i] for i in telling)) for key in parts}
    if len(set(names.values())) < len(names):
        names = {key: _legend(runs[0].label) for key, runs in families.items()}
    return {names[key]: sorted(runs, key=lambda run: order(run.k or "")) for key, runs in families.items()}


def _dataset(group: Sequence[Reported]) -> str:
    return Path(group[0].saved.config.dataset.name).name


# ----------------------------------------------------------------------------------------- scores over k or lag


def systems_of(series: Series) -> Frame:
    """Return the rows of all systems that have a value, means over trainings where there are several.

    The BLEU of the reference translation itself, 100, is left out because it would flatten the axis.
    """
    every = [(name, run, row) for name, runs in series.items() for run in runs for row in run.rows.values()]
    rows = [
        replace(row, cell=(name, str(run.k or NO_K)))
        for name, run, row in every
        if row.value is not None and not (row.unit == "0-100" and row.low == row.value == 100)
    ]
    return over_trainings(("series", "k"), rows)


def _over_k(group: Sequence[Reported], series: Series, folder: Path, suffix: str) -> list[Drawn | Gap]:
    sweeps = {name: runs for name, runs in series.items() if len({run.k for run in runs} - {None}) > 1}
    frame = systems_of(sweeps)
    panels = _panels(frame)
    if not panels:
        why = "the runs have none of its metrics" if sweeps else "no two runs differ only in k"
        return [Gap("figure over k", (), why)]
    draw = partial(over_k, [panels], "k (source words read first)", 2.0, PAGE)
    title = f"Scores over k, {_dataset(group)}"
    caption = f"Bands: 95% intervals over {_questions(series)}."
    return [finish(draw, folder, f"over_k{suffix}", title, caption, _numbers(frame))]


def _over_lag(group: Sequence[Reported], series: Series, folder: Path, suffix: str) -> list[Drawn | Gap]:
    if len(group) < 2:
        return [Gap("figure over lag", (), "a single run has a single lag; give several runs")]
    frame = systems_of(series)
    lag, name = max(LAGS, key=lambda item: len(frame.where(item[0])))  # the first one if several are equal
    panels = _panels(frame, lag)
    if len(frame.where(lag)) < 2 or not panels:
        return [Gap("figure over lag", (), "fewer than two runs have a lag and a score")]
    draw = partial(over_k, [panels], f"lag ({name}, source words)", 2.0, PAGE, bars=True)
    title = f"Scores over lag, {_dataset(group)}"
    caption = f"Bars: 95% intervals over {_questions(series)}; a number at a point is its k."
    left = [run.label for run in group if lag not in run.rows or run.rows[lag].value is None]
    caption += f" Without a lag: {', '.join(left)}." if left else ""
    return [finish(draw, folder, f"over_lag{suffix}", title, caption, _numbers(frame, lag))]


def _panels(frame: Frame, lag: str = "") -> list[Panel]:
    """Return a panel for each metric that some run has, with a line for each series over k or over a lag."""
    names, over = frame.values("series"), frame.where(lag) if lag else None
    drawn = partial(lines, by="series", x="k", names=names, over=over, trainings="trainings")
    return [Panel(label, drawn(rows)) for metric, label in PANELS if (rows := frame.where(metric))]


def _numbers(frame: Frame, *more: str) -> Table:
    """Return the drawn numbers, one row for each run and metric."""
    metrics = [*more, *(metric for metric, _ in PANELS)]
    rows = [(*row.cell, row.metric, row.value, row.low, row.high) for row in frame.rows if row.metric in metrics]
    return Table((*frame.columns, "metric", "value", "low", "high"), rows)


def _questions(series: Series) -> str:
    """Return the part of a caption that explains bands: the number of questions, or of trainings if several."""
    several = any(len(runs) > len({run.k for run in runs}) for runs in series.values())
    trainings = ", or one standard deviation over the trainings that the legend counts" if several else ""
    return f"{len(next(iter(series.values()))[0].saved.ids)} questions{trainings}"


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
    rows: list[Row] = []
    gaps: list[Drawn | Gap] = []
    for name, run in ((name, run) for name, runs in series.items() for run in runs):
        try:
            if run.saved.config.guesser is None:
                raise NotComputable("no guesser ran")
            values = np.array([wins_at(trace) for trace in run.saved.traces])
        except SqaError as error:
            gaps.append(Gap("expected wins over the source read", (run.label,), in_a_line(error)))
            continue
        band = enumerate(bootstrap_band(means(values), mean_curve, seed=run.saved.config.seed), start=1)
        rows += [row_of((name, _k(run), f"{i / BINS:g}"), "ew", point, "", CURVE) for i, point in band]
    if not rows:
        return gaps
    frame = over_trainings(("series", "k", "source_read"), rows)
    title = f"Expected wins over the source read, {_dataset(group)}"
    caption = (
        f"Expected wins if every question were answered at this point (curve {CURVE}).  "
        f"Bands: 95% intervals over {_questions(series)}."
    )
    draw = partial(_source_figure, frame)
    return [finish(draw, folder, f"over_source{suffix}", title, caption, _numbers(frame)), *gaps]


def _k(run: Reported) -> str:
    return "full input" if run.k == FULL else f"k = {run.k}"


def _source_figure(frame: Frame) -> Figure:
    """Draw a panel for each series of several k, and one for the other runs."""
    of_series = {name: frame.where(series=name) for name in frame.values("series")}
    panels = {name: ("k", rows) for name, rows in of_series.items() if len({row["k"] for row in rows}) > 1}
    if single := [row for name, rows in of_series.items() if name not in panels for row in rows]:
        panels["other runs" if panels else "all runs"] = ("series", single)
    x = {share: 100 * float(share) for share in frame.values("source_read")}
    drawn = [
        Panel(title, [line._replace(x=x) for line in lines(rows, by, "source_read", trainings="trainings")])
        for title, (by, rows) in panels.items()
    ]
    columns = min(2, len(drawn))
    grid = [drawn[start : start + columns] for start in range(0, len(drawn), columns)]
    width = PAGE if columns > 1 else 0.7 * PAGE
    return over_k(grid, "source read (% of its characters)", 2.3, width, ylabel="expected wins if answered here")
