"""Draw a question word by word: log MRR over the source read, the red curve, all target and source words.

The figure follows Figure 5 of Han, Carpuat and Boyd-Graber (2022).  The top panel shows log MRR over the share of
the source's characters read, for the system and for the human translation.  The red curve below it is 1 where a
word without a corresponding source word is written, else 0.  Below it are all written words in order.  Words with the
same position on the axis are drawn side by side, with a line from each word to its position; words without a source
word are red.  At the bottom are the source words with the links of the word aligner; lost words are red.  The
numbers (1), (2), ... mark the hallucinated stretches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.stepwise.systems import RULES, Subject
from sqa.diagnose.step_errors import Finding
from sqa.report import plots
from sqa.report.plots import COLOURS, GREY, PAGE, canvas

BLUE, RED = COLOURS[0], COLOURS[1]
SIZE = 6.5  # font size of the words, in points
STEP = 8.2  # points from one word to the next
LETTER = 0.62  # mean width of a letter as a share of SIZE, a generous estimate
LEADS, LINKS = 30, 24  # distances in points: axis to written words, written words to source words
FRAME = 62  # points for titles, labels and ticks
BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}  # background of texts that cover a line


def numbers(subject: Subject, finding: Finding) -> list[list[str]]:
    """Return the numbers in the figure as a table: a row for each word of the system, then of the human translation."""
    index, trace = subject.index_of(finding), subject.trace(finding)
    errors, lines = subject.errors[index], {subject.system: subject.lines[index], "human": subject.human[index]}
    rows = [["question", "of", "step", "source_words", "source_read", "word", "links", "unaligned", "log_mrr"]]
    for name, line in lines.items():
        for step, (words, read, log) in enumerate(zip(line.read, line.fraction, line.log_mrr, strict=True)):
            word = ["", "", "n/a"]
            if name != "human":
                links = " ".join(map(str, errors.links[step]))
                word = [trace.emissions[step].token, links, str(int(errors.unaligned[step]))]
            rows.append([finding.question, name, str(step), str(words), f"{read:.6f}", *word, f"{log:.6f}"])
    return rows


def ranks(finding: Finding) -> str:
    """Return the rank of the answer before and after a finding, as text."""
    return " to ".join(str(rank or f"> {RULES.top}") for rank in (finding.rank_before, finding.rank_after))


def draw(subject: Subject, finding: Finding, panel: str = "") -> plots.Figure:
    """Draw the figure of one finding; its width grows with the number of words."""
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


def _logs(axes: plots.Axes, subject: Subject, finding: Finding) -> None:
    """Draw log MRR at every written word over the share of the source read, and mark the hallucinated stretches."""
    system, human = (lines[subject.index_of(finding)] for lines in (subject.lines, subject.human))
    curves = ((system, subject.system, BLUE, "-"), (human, "human", GREY, "--"))  # dashed: the line below stays visible
    for line, name, colour, dash in curves:
        x = 100 * np.concatenate([[0], line.fraction, [1]])
        y = np.concatenate([[RULES.floor], line.log_mrr, line.log_mrr[-1:]])
        axes.plot(x, y, color=colour, linestyle=dash, drawstyle="steps-post", linewidth=1.1, clip_on=False, label=name)
    if subject.kind(finding) == "under-translation":
        start, end = subject.silence(finding)
        axes.axvspan(100 * start, 100 * end, color=RED, alpha=0.12, linewidth=0)
        middle, above = 50 * (start + end), RULES.floor + 0.15
        axes.text(middle, above, "nothing written", color=RED, fontsize=7, ha="center", bbox=BOX)
    for number, mark in enumerate(subject.marks(finding), 1):
        at = (100 * system.fraction[mark.last], system.log_mrr[mark.last])
        axes.plot(*at, marker="o", color=RED, markersize=5 if mark == finding else 2.5, clip_on=False, zorder=3)
        if mark == finding:
            dx, align = (-7, "right") if at[0] > 70 else (7, "left")
            options: dict[str, Any] = {"color": RED, "fontsize": 7, "ha": align, "bbox": BOX}
            axes.annotate(f"({number}) rank {ranks(mark)}", at, xytext=(dx, 5), textcoords="offset points", **options)
    axes.set_ylim(RULES.floor - 0.2, 0.3)
    axes.set_yticks([-4, -3, -2, -1, 0])
    axes.set_ylabel("log MRR (nats)")
    axes.set_xlim(0, 100)
    axes.tick_params(labelbottom=False)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), labelcolor="linecolor", handlelength=1.2)


def _red(axes: plots.Axes, subject: Subject, finding: Finding) -> None:
    """Draw the red curve: 1 from each position of an unaligned word up to the next word's position, else 0."""
    index = subject.index_of(finding)
    x, y = red_curve(subject.lines[index].fraction, subject.errors[index].unaligned)
    axes.plot(100 * x, y, color=RED, drawstyle="steps-post", linewidth=1.1)
    axes.fill_between(100 * x, y, step="post", color=RED, alpha=0.15, linewidth=0)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1.15)
    axes.set_yticks([0, 1])
    axes.set_ylabel("unaligned", color=RED)


def red_curve(fraction: np.ndarray, unaligned: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the x and y of the steps: y is 1 from a position where an unaligned word is written, else 0."""
    positions, inverse = np.unique(fraction, return_inverse=True)
    flags = np.bincount(inverse, weights=unaligned, minlength=len(positions)) > 0
    return np.concatenate([[0], positions, [1]]), np.concatenate([[0], flags, flags[-1:] if len(flags) else [0]])


def _words(
    axes: plots.Axes, subject: Subject, finding: Finding, written: dict[int, str], heights: tuple[float, float, float]
) -> None:
    """Draw every written word with a line from its position on the axis, and its links to the source words.

    The y axis is in points.  `heights` are the upper ends of the source words, of the links, and of the panel.
    """
    index, source = subject.index_of(finding), subject.trace(finding).question.words
    errors, fraction = subject.errors[index], subject.lines[index].fraction
    lost = range(finding.span.start, finding.span.stop) if finding.span and finding.kind == "omission" else ()
    read, linked, top = heights
    axes.set_xlim(0, 100)
    axes.set_ylim(0, top)
    axes.axis("off")
    at = [100 * (i + 0.5) / len(source) for i in range(len(source))]
    for x, (i, word) in zip(at, enumerate(source), strict=True):
        _word(axes, x, read, word, i in lost, i in lost)
    for i, (step, word) in enumerate(written.items()):
        x, bad = 100 * (i + 0.5) / len(written), errors.unaligned[step]
        lead = ([100 * fraction[step], x, x], [top, top - LEADS, top - LEADS if bad else linked])
        axes.plot(*lead, color=RED if bad else GREY, linewidth=0.8 if bad else 0.5, zorder=1)
        for link in () if bad else errors.links[step]:
            axes.plot([x, at[link]], [linked, read + 1], color=GREY, linewidth=0.5, zorder=1)
        _word(axes, x, top - LEADS, word, bad, errors.hallucinated[step])
    label = "source read (% of its characters), every word written and the source's words; red: it stands for none"
    axes.text(50, 0, label, ha="center", va="bottom", fontsize=8)


def _word(axes: plots.Axes, x: float, y: float, word: str, red: bool, bold: bool) -> None:
    """Draw a word vertically, with its upper end at (x, y)."""
    colour, weight = RED if red else "black", "bold" if bold else "normal"
    options: dict[str, Any] = {"color": colour, "fontweight": weight, "fontsize": SIZE, "bbox": BOX}
    axes.text(x, y, word.replace("$", r"\$"), ha="center", va="top", rotation=90, **options)
