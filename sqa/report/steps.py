"""Draw a question word by word, as in Figure 5 of Han, Carpuat and Boyd-Graber (2022).

The top panel shows the log reciprocal rank of the answer, which the paper calls log MRR, over the share of the
source's characters read.  The red curve below it is 1 where a word without a corresponding source word is written, else
0.  The text of the output and of the source follows; words without a counterpart and hallucinated words are red.  The
numbers (1), (2), ... mark the hallucinated stretches in the panel and in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sqa.core import QuestionTrace
from sqa.diagnose.step_errors import DiagnoseConfig, Finding, StepErrors
from sqa.report.plots import COLOURS, GREY, PAGE, canvas

if TYPE_CHECKING:
    from sqa.report.plots import Axes, Figure

BLUE, RED = COLOURS[0], COLOURS[1]
FLOOR = DiagnoseConfig().floor
SIZE, LINE, SPACE = 7.5, 11.0, 2.6  # points: size of the letters, from one line to the next, between two words
WIDE = 2.6  # width of a mark's label, in percent of the x axis
MARGIN = 8  # points beside and below the text
PANELS = (118, 38)  # points: heights of log MRR and of the red curve, with their labels
BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}  # background of texts that cover a line

Word = tuple[str, bool]  # text, whether it is red


class Beside(NamedTuple):
    """Log MRR of another translation of the question, such as the human one."""

    label: str
    share: np.ndarray  # of the source's characters read at each step, 0 to 1
    log_mrr: np.ndarray


def marks_of(errors: StepErrors) -> list[Finding]:
    """Return the hallucinations of a question in the order of their numbers (1), (2), ..."""
    return sorted((f for f in errors.findings if f.kind == "hallucination"), key=lambda f: f.first)


def draw_steps(
    trace: QuestionTrace,
    errors: StepErrors,
    title: str,
    beside: Beside | None = None,
    shown: Finding | None = None,
    silence: tuple[float, float] | None = None,
) -> Figure:
    """Draw a question.

    shown: the finding whose mark is larger and whose lost source words are red.  silence: shares of the source between
    which nothing is written.
    """
    paragraphs = list(_output(trace, errors, silence)), list(_source(trace, shown))
    width = PAGE * 72 - 2 * MARGIN
    placed = [list(laid_out(words, width)) for words in paragraphs]
    lines = [1 + max((line for _, line, _ in words), default=0) for words in placed]
    heights = (*PANELS, (sum(lines) + 1.5) * LINE + MARGIN)
    figure, [[logs], [red], [text]] = canvas((PAGE, sum(heights) / 72 + 0.35), 3, heights=heights)
    logs.set_title(f"{title}; {trace.question.id}, answer: {trace.question.page.replace('_', ' ')}", loc="left")
    _draw_logs(logs, trace, errors, beside, shown, silence)
    x, y = red_curve(trace.fraction, errors.unaligned)
    red.plot(100 * x, y, color=RED, drawstyle="steps-post", linewidth=1.1)
    red.fill_between(100 * x, y, step="post", color=RED, alpha=0.15, linewidth=0)
    red.set(xlim=(0, 100), ylim=(0, 1.15), yticks=[0, 1], xlabel="source read (% of its characters)")
    red.set_ylabel("unaligned", color=RED)
    text.axis("off")
    top = (sum(lines) + 0.5) * LINE
    for words, before in zip(placed, (0, lines[0] + 0.5), strict=True):
        for at, line, (word, marked) in words:
            place = ((MARGIN + at) / 72, (MARGIN + top - (before + line + 1) * LINE) / 72)
            look: dict[str, Any] = {"color": RED, "fontweight": "bold"} if marked else {"color": "black"}
            label = text.text(*place, _plain(word), transform=figure.dpi_scale_trans, fontsize=SIZE, **look)
            label.set_in_layout(False)
    return figure


def _draw_logs(
    axes: Axes,
    trace: QuestionTrace,
    errors: StepErrors,
    beside: Beside | None,
    shown: Finding | None,
    silence: tuple[float, float] | None,
) -> None:
    """Draw the log reciprocal rank at every written word, the marks, and the silence."""
    logs = np.array(errors.log_mrr)
    others = [(beside, GREY, "--")] if beside else []
    curves = [(Beside("this translation", trace.fraction, logs), BLUE, "-"), *others]
    for curve, colour, dashes in curves:
        x = 100 * np.concatenate([[0], curve.share, [1]])
        y = np.concatenate([[FLOOR], curve.log_mrr, curve.log_mrr[-1:] if len(curve.log_mrr) else [FLOOR]])
        look: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.1, "clip_on": False}
        axes.plot(x, y, color=colour, linestyle=dashes, label=curve.label, **look)
    if silence:
        axes.axvspan(100 * silence[0], 100 * silence[1], color=RED, alpha=0.12, linewidth=0)
        axes.text(50 * sum(silence), FLOOR + 0.15, "nothing written", color=RED, fontsize=7, ha="center", bbox=BOX)
    labelled = -WIDE
    for number, mark in enumerate(marks_of(errors), 1):
        x, y = 100 * trace.fraction[mark.last], logs[mark.last]
        axes.plot(x, y, marker="o", color=RED, markersize=5 if mark == shown else 3, clip_on=False, zorder=3)
        labelled = max(x, labelled + WIDE)  # a label too near the one before it moves to the right
        axes.text(labelled, y + 0.2, f"({number})", color=RED, fontsize=7, ha="center")
    axes.set(xlim=(0, 100), ylim=(FLOOR - 0.2, 0.5), yticks=[-4, -3, -2, -1, 0], ylabel="log reciprocal rank\n(nats)")
    axes.tick_params(labelbottom=False)
    if beside:
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0.97), labelcolor="linecolor", handlelength=1.2)


def red_curve(share: np.ndarray, unaligned: Sequence[bool]) -> tuple[np.ndarray, np.ndarray]:
    """Return the x and y of the steps: y is 1 from a position where an unaligned word is written, else 0."""
    positions, inverse = np.unique(share, return_inverse=True)
    flags = np.bincount(inverse, weights=unaligned, minlength=len(positions)) > 0
    return np.concatenate([[0], positions, [1]]), np.concatenate([[0], flags, flags[-1:] if len(flags) else [0]])


def _output(trace: QuestionTrace, errors: StepErrors, silence: tuple[float, float] | None) -> Iterator[Word]:
    """Yield the words of the output with the numbers of the marks and the place of the silence."""
    yield "Output:", False
    numbers = {mark.first: number for number, mark in enumerate(marks_of(errors), 1)}
    silent = silence is not None
    for step, emission in enumerate(trace.emissions):
        if silent and silence is not None and trace.fraction[step] > silence[0]:
            yield "[silence]", True
            silent = False
        number = f"({numbers[step]}) " if step in numbers else ""
        if number or emission.token:
            yield number + emission.token, errors.unaligned[step] or errors.hallucinated[step]
    if silent:
        yield "[silence]", True


def _source(trace: QuestionTrace, shown: Finding | None) -> Iterator[Word]:
    """Yield the words of the source; the lost words of an omission are red."""
    yield "Source:", False
    lost = range(shown.span.start, shown.span.stop) if shown and shown.span and shown.kind == "omission" else ()
    yield from ((word, index in lost) for index, word in enumerate(trace.question.words))


def laid_out(words: Iterable[Word], width: float) -> Iterator[tuple[float, int, Word]]:
    """Yield each word with its distance from the left in points and its line, in lines of a maximum width."""
    x, line = 0.0, 0
    for word, red in words:
        length = _length(word, red)
        if x and x + length > width:
            x, line = 0.0, line + 1
        yield x, line, (word, red)
        x += length + SPACE


@lru_cache(maxsize=10_000)  # measuring a word takes milliseconds
def _length(word: str, red: bool) -> float:
    """Return the length of a word in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(weight="bold" if red else "normal")
    return float(TextPath((0, 0), _plain(word), SIZE, prop=font).get_extents().x1) if word else 0.0


def _plain(word: str) -> str:
    """Return a word without mathematical notation."""
    return word.replace("$", r"\$")
