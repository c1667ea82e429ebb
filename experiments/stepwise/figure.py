"""How an error happened, on one page: log MRR and unaligned words over the question, and the words around the error.

Top: log MRR over the source words read, of the system and of the human translation.  Below it the red curve: which
share of the last words written stands for no source word.  Bottom: the source and the translation around the error,
each word where it was read or written, with the links of the word aligner between them and log MRR above; red and bold
are hallucinated words of the translation and lost words of the source, red alone is every other unaligned word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.drawing import End, label_ends
from experiments.stepwise.rows import RULES, Line, StepwiseConfig, Subject
from sqa.report.figure_style import COLOURS, COLUMN, GREY, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sqa.core.trace import QuestionTrace
    from sqa.diagnose.step_errors import Finding, StepErrors

BLUE, RED = COLOURS[0], COLOURS[1]
SIZE = 6.5  # points, of the words
COLUMNS = 25  # words that fit side by side at that size
GAP = 16.0  # points between the source and the translation, for the links
FRAME = 84  # points of a figure that its titles, labels and ticks take


class Column(NamedTuple):
    """One place in the picture of the words: a source word read, a target word written, or both."""

    source: int | None  # 0-based in the question
    step: int | None


def columns(trace: QuestionTrace, finding: Finding, near: int) -> list[Column]:
    """Words around a finding in the order in which they were read and written, at most COLUMNS.

    A word written is beside the source word read before it; further ones follow with no source word.  What is left out
    for want of room is the end.
    """
    read = trace.source_words
    if finding.span is None:
        start, stop = int(read[finding.first]), int(read[finding.last])
    else:
        start, stop = finding.span.start, finding.span.stop
    first, last = max(0, start - near), min(len(trace.question.words), stop + near)
    found: list[Column] = []
    for place in range(first, last):
        steps = [int(step) for step in np.flatnonzero(read == place + 1) if trace.emissions[step].token]
        found.append(Column(place, steps[0] if steps else None))
        found += [Column(None, step) for step in steps[1:]]
    return found[:COLUMNS]


def recent_share(errors: StepErrors, recent: int) -> np.ndarray:
    """(n,) share, 0 to 1, of unaligned words among the last `recent` ones written."""
    total = np.array([0, *accumulate(map(int, errors.unaligned))])
    end = np.arange(1, len(total))
    begin = np.maximum(end - recent, 0)
    return (total[end] - total[begin]) / (end - begin)


def numbers(subject: Subject, finding: Finding, config: StepwiseConfig) -> list[list[str]]:
    """What is drawn: a line per step of the system, then of the human translation."""
    place, trace = subject.place(finding), subject.trace(finding)
    errors, line, human = subject.errors[place], subject.lines[place], subject.human[place]
    share = recent_share(errors, config.recent)
    header = ["question", "of", "step", "source_words", "word", "links", "unaligned", "recent_unaligned", "log_mrr"]
    rows = [header]
    for step, emission in enumerate(trace.emissions):
        links = " ".join(map(str, errors.links[step]))
        marks = (str(int(errors.unaligned[step])), f"{share[step]:.6f}", f"{line.log_mrr[step]:.6f}")
        rows.append([finding.question, subject.system, str(step), str(line.read[step]), emission.token, links, *marks])
    for step, (read, log) in enumerate(zip(human.read, human.log_mrr, strict=True)):
        rows.append([finding.question, "human", str(step), str(read), "", "", "n/a", "n/a", f"{log:.6f}"])
    return rows


# ------------------------------------------------------------------------------------------------------------ figure


def draw(subject: Subject, finding: Finding, config: StepwiseConfig, folder: Path, stem: str) -> list[Path]:
    """The figure of one finding, one column wide; returns the PDF and the PNG."""
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    place, trace = subject.place(finding), subject.trace(finding)
    errors = subject.errors[place]
    shown = columns(trace, finding, config.near)
    above = _height([trace.question.words[c.source] for c in shown if c.source is not None])
    below = _height([trace.emissions[c.step].token for c in shown if c.step is not None])
    heights = [62, 32, 50, above + GAP + below]  # points
    with style():
        size = (COLUMN, (sum(heights) + FRAME) / 72)
        layout = ConstrainedLayoutEngine(h_pad=0.02, hspace=0.03)
        figure, panels = pyplot.subplots(4, 1, figsize=size, layout=layout, height_ratios=heights)
        over, red, zoom, words = panels
        over.set_title(_title(subject, finding, trace), loc="left", fontsize=7)
        edges = _edges(shown, trace)
        _overview(over, subject, place, edges)
        _red_curve(red, errors, subject.lines[place], config.recent, len(trace.question.words), edges)
        _zoom(zoom, subject.lines[place], finding, shown)
        _words(words, trace, errors, finding, shown, (above, below))
        label_ends(over, _ends(subject, place))
        return save(figure, folder, stem)


def _title(subject: Subject, finding: Finding, trace: QuestionTrace) -> str:
    kind = subject.kind(finding)
    answer = trace.question.page.replace("_", " ")
    return f"{kind}, {finding.question}, {subject.system}, {subject.guesser}\nanswer: {answer}"


def _edges(shown: Sequence[Column], trace: QuestionTrace) -> tuple[int, int]:
    """Source words read at the left and the right end of the picture of the words."""
    places = [c.source for c in shown if c.source is not None]
    return places[0], min(places[-1] + 1, len(trace.question.words))


def _settled(read: np.ndarray, values: np.ndarray, before: float, end: int) -> tuple[np.ndarray, np.ndarray]:
    """A value (n,) over the number of source words read, 0 .. end: the last one at each, `before` until the first."""
    x = np.arange(end + 1)
    return x, np.concatenate([[before], values])[np.searchsorted(read, x, side="right")]


def _ends(subject: Subject, place: int) -> dict[str, End]:
    lines = ((subject.system.replace(" ", "\n"), subject.lines[place], BLUE), ("human", subject.human[place], GREY))
    return {name: End(line.log_mrr[-1] if len(line.log_mrr) else RULES.floor, colour) for name, line, colour in lines}


def _overview(axes: Axes, subject: Subject, place: int, edges: tuple[int, int]) -> None:
    end = len(subject.run.questions[place].words)
    axes.axvspan(*edges, color=GREY, alpha=0.15, linewidth=0)
    for line, colour, dash in ((subject.lines[place], BLUE, "-"), (subject.human[place], GREY, "--")):  # both are seen
        x, y = _settled(line.read, line.log_mrr, RULES.floor, end)
        axes.plot(x, y, color=colour, linestyle=dash, drawstyle="steps-post", linewidth=1.1, clip_on=False)
    _log_axis(axes)
    axes.set_xlim(0, end)
    axes.tick_params(labelbottom=False)


def _log_axis(axes: Axes) -> None:
    axes.set_ylim(RULES.floor - 0.2, 0.3)
    axes.set_yticks([-4, -2, 0])
    axes.set_ylabel("log MRR\n(nats)", labelpad=2)


def _red_curve(axes: Axes, errors: StepErrors, line: Line, recent: int, end: int, edges: tuple[int, int]) -> None:
    axes.axvspan(*edges, color=GREY, alpha=0.15, linewidth=0)
    x, y = _settled(line.read, 100 * recent_share(errors, recent), np.nan, end)
    axes.plot(x, y, color=RED, drawstyle="steps-post", linewidth=1.1, clip_on=False)
    axes.set_xlim(0, end)
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel(f"unaligned\n(% of last {recent})", color=RED, labelpad=2, fontsize=6.5)
    axes.set_xlabel("source words read (grey: the words below)", labelpad=1)


def _zoom(axes: Axes, line: Line, finding: Finding, shown: Sequence[Column]) -> None:
    """Log MRR after each column; the ranks before and after the finding are named where they are in the picture."""
    first = min((c.step for c in shown if c.step is not None), default=0)
    log = RULES.floor if first == 0 else float(line.log_mrr[first - 1])
    values, marked = [], []
    for column in shown:
        log = log if column.step is None else float(line.log_mrr[column.step])
        values.append(log)
        marked.append(column.step is not None and finding.span is None and finding.first <= column.step <= finding.last)
    x = np.arange(len(shown))
    axes.plot(x, values, color=BLUE, drawstyle="steps-mid", linewidth=1.1, marker="o", markersize=2)
    at = np.flatnonzero(marked)
    axes.plot(at, np.array(values)[at], marker="o", color=RED, markersize=4, linestyle="")
    if len(at):
        low = values[at[-1]] < RULES.floor + 1  # no room below
        places = ((max(at[0] - 1, 0), finding.rank_before, "black", 4, "bottom"),
                  (at[-1], finding.rank_after, RED, 4 if low else -4, "bottom" if low else "top"))  # fmt: skip
        for place, rank, colour, away, side in places:
            axes.annotate(
                f"rank {rank or f'> {RULES.top}'}", (place, values[place]), xytext=(0, away),
                textcoords="offset points", color=colour, fontsize=SIZE, ha="center", va=side,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85},
            )  # fmt: skip
    _log_axis(axes)
    axes.set_xlim(-0.7, len(shown) - 0.3)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)


def _words(
    axes: Axes,
    trace: QuestionTrace,
    errors: StepErrors,
    finding: Finding,
    shown: Sequence[Column],
    heights: tuple[float, float],
) -> None:
    """Source above, translation below, links between; the y axis is in points."""
    above, below = heights
    axes.set_xlim(-0.7, len(shown) - 0.3)
    axes.set_ylim(0, above + GAP + below)
    axes.axis("off")
    lost = range(finding.span.start, finding.span.stop) if finding.span and finding.kind == "omission" else ()
    place_of = {c.source: x for x, c in enumerate(shown) if c.source is not None}
    for x, column in enumerate(shown):
        if column.source is not None:
            gone = column.source in lost
            _word(axes, x, below + GAP, trace.question.words[column.source], "bottom", gone, gone)
        if column.step is not None:
            bad, content = errors.unaligned[column.step], errors.hallucinated[column.step]
            _word(axes, x, below, trace.emissions[column.step].token, "top", bad, content)
            for source in () if bad else errors.links[column.step]:
                if source in place_of and source not in lost:
                    ends = [below + 1, below + GAP - 1]
                    axes.plot([x, place_of[source]], ends, color=GREY, linewidth=0.6, solid_capstyle="butt")
    for y, name in ((below + GAP + above / 2, "source"), (below / 2, "translation")):
        axes.text(
            -0.02, y, name, transform=axes.get_yaxis_transform(), rotation=90, ha="right", va="center", fontsize=8
        )


def _word(axes: Axes, x: int, y: float, word: str, side: str, red: bool, bold: bool) -> None:
    axes.text(
        x, y, word.replace("$", r"\$"), rotation=90, ha="center", va=side, fontsize=SIZE,
        color=RED if red else "black", fontweight="bold" if bold else "normal",
    )  # fmt: skip


def _height(words: Sequence[str]) -> float:
    """Points that the longest of some words takes, upright and bold."""
    return 4 + max((_width(word) for word in words), default=0.0)


@lru_cache(maxsize=4096)
def _width(word: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    return float(
        TextPath((0, 0), word.replace("$", r"\$"), size=SIZE, prop=FontProperties(weight="bold")).get_extents().width
    )
