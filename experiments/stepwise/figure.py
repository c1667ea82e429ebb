"""A question word by word: log MRR over the source read, the red curve, all words written and read.

After Figure 5 of Han, Carpuat and Boyd-Graber (2022), on top log MRR over the share of the source's characters read, of
the system and of the human translation, and below it the red curve: 1 where a word written there stands for no source
word, else 0.  Below these is every word written, in order: words that share a place on the axis stand side by side, a
line leads from each to its place, and red ones stand for no source word.  At the bottom are the source's words, with
the links of the word aligner; lost ones are red.  (1), (2), ... are the hallucinated stretches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from experiments.stepwise.rows import RULES, Subject
from sqa.report.plots import COLOURS, GREY, PAGE, canvas

if TYPE_CHECKING:
    from sqa.diagnose.step_errors import Finding
    from sqa.report.plots import Axes, Figure

BLUE, RED = COLOURS[0], COLOURS[1]
SIZE = 6.5  # points, of the words
STEP = 8.2  # points from one word to the next
LETTER = 0.62  # of SIZE, width of a letter on average, generously
LEADS, LINKS = 30, 24  # points from the axis down to the words written, and from these to the source's words
FRAME = 62  # points that titles, labels and ticks take
BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}  # behind what stands on a line


def numbers(subject: Subject, finding: Finding) -> list[list[str]]:
    """What is drawn: a line per word of the system, then of the human translation."""
    place, trace = subject.place(finding), subject.trace(finding)
    errors, line, human = subject.errors[place], subject.lines[place], subject.human[place]
    rows = [["question", "of", "step", "source_words", "source_read", "word", "links", "unaligned", "log_mrr"]]
    for step, (emission, words, read, log) in enumerate(
        zip(trace.emissions, line.read, line.fraction, line.log_mrr, strict=True)
    ):
        links, bad = " ".join(map(str, errors.links[step])), str(int(errors.unaligned[step]))
        rows.append(
            [
                finding.question,
                subject.system,
                str(step),
                str(words),
                f"{read:.6f}",
                emission.token,
                links,
                bad,
                f"{log:.6f}",
            ]
        )
    for step, (words, read, log) in enumerate(zip(human.read, human.fraction, human.log_mrr, strict=True)):
        cells = [str(step), str(words), f"{read:.6f}", "", "", "n/a", f"{log:.6f}"]
        rows.append([finding.question, "human", *cells])
    return rows


def ranks(finding: Finding) -> str:
    """The rank of the answer before and after a finding, in words."""
    return " to ".join(str(rank or f"> {RULES.top}") for rank in (finding.rank_before, finding.rank_after))


def draw(subject: Subject, finding: Finding, panel: str = "") -> Figure:
    """The figure of one finding, as wide as its words need."""
    trace = subject.trace(finding)
    numbered = {mark.first: f"({number}) " for number, mark in enumerate(subject.marks(finding), 1)}
    written = {step: numbered.get(step, "") + e.token for step, e in enumerate(trace.emissions) if e.token}
    below = LETTER * SIZE * max(map(len, trace.question.words))
    above = LINKS + LETTER * SIZE * max(map(len, written.values()), default=0)
    heights = (96, 26, LEADS + above + below + 12)  # points
    size = (max(PAGE, (max(len(written), len(trace.question.words)) * STEP + 110) / 72), (sum(heights) + FRAME) / 72)
    figure, [[logs], [red], [text]] = canvas(size, 3, heights=heights)
    figure.set_layout_engine("constrained", h_pad=0.01, hspace=0.0)
    title = f"{panel}{subject.kind(finding)}: {subject.system}, answered by {subject.guesser}"
    logs.set_title(f"{title}; {trace.question.id}, answer: {trace.question.page.replace('_', ' ')}", loc="left")
    _logs(logs, subject, finding)
    _red(red, subject, finding)
    _words(text, subject, finding, written, (below + 12, below + 12 + above - LINKS, heights[-1]))
    return figure


def _logs(axes: Axes, subject: Subject, finding: Finding) -> None:
    """Log MRR at every word written, at the share of the source read then; the marks of the hallucinated stretches."""
    mine, human = (lines[subject.place(finding)] for lines in (subject.lines, subject.human))
    for line, name, colour, dash in ((mine, subject.system, BLUE, "-"), (human, "human", GREY, "--")):  # both are seen
        x = 100 * np.concatenate([[0], line.fraction, [1]])
        y = np.concatenate([[RULES.floor], line.log_mrr, line.log_mrr[-1:]])
        axes.plot(x, y, color=colour, linestyle=dash, drawstyle="steps-post", linewidth=1.1, clip_on=False, label=name)
    if subject.kind(finding) == "under-translation":
        start, end = subject.silence(finding)
        axes.axvspan(100 * start, 100 * end, color=RED, alpha=0.12, linewidth=0)
        axes.text(
            50 * (start + end), RULES.floor + 0.15, "nothing written", color=RED, fontsize=7, ha="center", bbox=BOX
        )
    for number, mark in enumerate(subject.marks(finding), 1):
        at = (100 * mine.fraction[mark.last], mine.log_mrr[mark.last])
        axes.plot(*at, marker="o", color=RED, markersize=5 if mark == finding else 2.5, clip_on=False, zorder=3)
        if mark == finding:
            side, align = (-7, "right") if at[0] > 70 else (7, "left")
            axes.annotate(
                f"({number}) rank {ranks(mark)}",
                at,
                xytext=(side, 5),
                textcoords="offset points",
                color=RED,
                fontsize=7,
                ha=align,
                bbox=BOX,
            )
    axes.set_ylim(RULES.floor - 0.2, 0.3)
    axes.set_yticks([-4, -3, -2, -1, 0])
    axes.set_ylabel("log MRR (nats)")
    axes.set_xlim(0, 100)
    axes.tick_params(labelbottom=False)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), labelcolor="linecolor", handlelength=1.2)


def _red(axes: Axes, subject: Subject, finding: Finding) -> None:
    """1 from where a word was written that stands for no source word until the next place a word was written at."""
    place = subject.place(finding)
    x, y = red_curve(subject.lines[place].fraction, subject.errors[place].unaligned)
    axes.plot(100 * x, y, color=RED, drawstyle="steps-post", linewidth=1.1)
    axes.fill_between(100 * x, y, step="post", color=RED, alpha=0.15, linewidth=0)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1.15)
    axes.set_yticks([0, 1])
    axes.set_ylabel("unaligned", color=RED)


def red_curve(fraction: np.ndarray, unaligned: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(places from 0 to 1, 0 or 1 from each on): 1 where one of the words written at a place is unaligned."""
    places = np.unique(fraction)
    flags = [any(bad for at, bad in zip(fraction, unaligned, strict=True) if at == place) for place in places]
    ends = [float(flags[-1])] if flags else [0.0]
    return np.concatenate([[0], places, [1]]), np.concatenate([[0], np.array(flags, dtype=float), ends])


def _words(
    axes: Axes, subject: Subject, finding: Finding, written: dict[int, str], heights: tuple[float, float, float]
) -> None:
    """Every word written on a line from its place on the axis above, and its links to the source's words.

    The y axis is in points; heights: of the upper ends of the source's words, of the links, and of the whole.
    """
    place, source = subject.place(finding), subject.trace(finding).question.words
    errors, fraction = subject.errors[place], subject.lines[place].fraction
    lost = range(finding.span.start, finding.span.stop) if finding.span and finding.kind == "omission" else ()
    read, linked, top = heights
    axes.set_xlim(0, 100)
    axes.set_ylim(0, top)
    axes.axis("off")
    at = [100 * (i + 0.5) / len(source) for i in range(len(source))]
    for x, (i, word) in zip(at, enumerate(source), strict=True):
        _word(axes, x, read, word, "top", i in lost, i in lost)
    for i, (step, word) in enumerate(written.items()):
        x, bad = 100 * (i + 0.5) / len(written), errors.unaligned[step]
        lead = ([100 * fraction[step], x, x], [top, top - LEADS, top - LEADS if bad else linked])
        axes.plot(*lead, color=RED if bad else GREY, linewidth=0.8 if bad else 0.5, zorder=1)
        for link in () if bad else errors.links[step]:
            axes.plot([x, at[link]], [linked, read + 1], color=GREY, linewidth=0.5, zorder=1)
        _word(axes, x, top - LEADS, word, "top", bad, errors.hallucinated[step])
    label = "source read (% of its characters), every word written and the source's words; red: it stands for none"
    axes.text(50, 0, label, ha="center", va="bottom", fontsize=8)


def _word(axes: Axes, x: float, y: float, word: str, side: str, red: bool, bold: bool) -> None:
    axes.text(
        x,
        y,
        word.replace("$", r"\$"),
        rotation=90,
        ha="center",
        va=side,
        fontsize=SIZE,
        bbox=BOX,
        color=RED if red else "black",
        fontweight="bold" if bold else "normal",
    )
