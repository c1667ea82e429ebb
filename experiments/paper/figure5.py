"""Figure 5: (a) a hallucination and (b) an under-translation, word by word, over the source read.

    sqa reproduce fig5

After Figure 5 of Han, Carpuat and Boyd-Graber (2022), on top log MRR over the share of the source's characters read,
of the system and of the human translation, and below it the red curve: 1 where a word written there stands for no
source word, else 0.  Below these is every word written, in order: words that share a place on the axis stand side by
side, a line leads from each to its place, and red ones stand for no source word.  (1), (2), ... are the hallucinated
stretches that Table 2 marks.  Which question is shown: experiments/paper/chosen.py.

Claim, after Section 7: words that the translation invents mislead whoever answers; `sqa reproduce hallucination` and
`under-translation` measure it over all questions of a run: a question alone proves nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.drawing import End, label_ends
from experiments.made import Made
from experiments.paper.chosen import Example, chosen, load_systems, marks, missing, silence
from experiments.stepwise.rows import RULES
from sqa.core.errors import NotComputable
from sqa.report.figure_style import COLOURS, GREY, PAGE, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEAD = ("dataset", "translator", "guesser", "shown", "what")
BLUE, RED = COLOURS[0], COLOURS[1]
SIZE = 6.5  # points, of the words
STEP = 8.2  # points from one word to the next
LETTER = 0.62  # of SIZE, width of a letter on average, generously
LEADS = 30  # points from the axis down to the words
FRAME = 62  # points that titles, labels and ticks take


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig5`: a figure and its numbers for each data set and panel.  None at all: NotComputable."""
    found = load_systems(config_path, runs)
    made, lines = Made(found.folder), []
    examples = list(chosen(found))
    for example in examples:
        made.csv(f"{example.stem}.csv", numbers(example))
        made.add(draw(example, found.folder))
        subject, finding = example.subject, example.finding
        where = (subject.dataset, subject.system, subject.guesser)
        lines.append((*where, f"5{example.panel}: {subject.kind(finding)}", _shown(example)))
    gone = missing(found, examples)
    lines += [(dataset, "-", found.config.guesser, "no example", why) for dataset, why in gone]
    lines += [("all", out.label, "-", "not computed", out.reason) for out in found.left_out]
    if not made.paths:
        raise NotComputable("figure 5: " + "; ".join(why for _, why in gone))
    made.table("figure5.tsv", HEAD, lines)
    print(made.paths[-1].read_text(encoding="utf-8"), end="")
    made.end()


def _shown(example: Example) -> str:
    finding = example.finding
    answer = example.subject.trace(finding).question.page
    if example.panel == "a":
        ranks = " to ".join(str(rank or f"> {RULES.top}") for rank in (finding.rank_before, finding.rank_after))
        what = f"{' '.join(finding.words)!r}: rank {ranks}, {example.size:.2f} nats lost"
    else:
        lost = " ".join(finding.span.words) if finding.span else ""
        what = f"{lost!r} lost, {100 * example.size:.0f}% of the source read in silence"
    return f"{finding.question} ({answer}): {what}"


def numbers(example: Example) -> list[list[str]]:
    """What is drawn: a line per word of the system, then of the human translation."""
    subject, place = example.subject, example.subject.place(example.finding)
    trace, errors = subject.trace(example.finding), subject.errors[place]
    rows = [["question", "of", "step", "source_read", "word", "unaligned", "log_mrr"]]
    for step, (word, read, log) in enumerate(
        zip(trace.emissions, subject.lines[place].fraction, subject.lines[place].log_mrr, strict=True)
    ):
        marked = str(int(errors.unaligned[step]))
        rows.append([trace.question.id, subject.system, str(step), f"{read:.6f}", word.token, marked, f"{log:.6f}"])
    human = subject.human[place]
    for step, (read, log) in enumerate(zip(human.fraction, human.log_mrr, strict=True)):
        rows.append([trace.question.id, "human", str(step), f"{read:.6f}", "", "n/a", f"{log:.6f}"])
    return rows


# ------------------------------------------------------------------------------------------------------------ figure


def draw(example: Example, folder: Path) -> list[Path]:
    """One example's figure, as wide as its words need; returns the PDF and the PNG."""
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    subject, trace = example.subject, example.subject.trace(example.finding)
    words = [emission.token for emission in trace.emissions if emission.token]
    numbered = [f"({number}) {trace.emissions[mark.first].token}" for number, mark in enumerate(marks(example), 1)]
    heights = (96, 26, LEADS + SIZE * LETTER * max(map(len, (*words, *numbered))) + 12)  # points
    with style():
        size = (max(PAGE, (len(words) * STEP + 110) / 72), (sum(heights) + FRAME) / 72)
        layout = ConstrainedLayoutEngine(h_pad=0.01, hspace=0.0)
        figure, panels = pyplot.subplots(3, 1, figsize=size, layout=layout, height_ratios=heights)
        logs, red, text = panels
        answer = trace.question.page.replace("_", " ")
        title = f"({example.panel}) {subject.kind(example.finding)}: {subject.system}, answered by {subject.guesser}"
        logs.set_title(f"{title}; {trace.question.id}, answer: {answer}", loc="left")
        _logs(logs, example)
        _red(red, example)
        _words(text, example, heights[-1])
        place = subject.place(example.finding)
        lines = ((subject.system.rpartition(", ")[2], subject.lines, BLUE), ("human", subject.human, GREY))
        label_ends(logs, {name: End(float(of[place].log_mrr[-1]), colour) for name, of, colour in lines})
        return save(figure, folder, example.stem)


def _logs(axes: Axes, example: Example) -> None:
    """Log MRR at every word written, at the share of the source read then; the marks of the hallucinated stretches."""
    subject, place = example.subject, example.subject.place(example.finding)
    for line, colour, dash in ((subject.lines[place], BLUE, "-"), (subject.human[place], GREY, "--")):  # both are seen
        x = 100 * np.concatenate([[0], line.fraction, [1]])
        y = np.concatenate([[RULES.floor], line.log_mrr, line.log_mrr[-1:]])
        axes.plot(x, y, color=colour, linestyle=dash, drawstyle="steps-post", linewidth=1.1, clip_on=False)
    mine = subject.lines[place]
    if example.panel == "b":
        start, end = silence(subject, example.finding)
        axes.axvspan(100 * start, 100 * end, color=RED, alpha=0.12, linewidth=0)
        axes.text(50 * (start + end), RULES.floor + 0.15, "nothing written", color=RED, fontsize=7, ha="center",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8})  # fmt: skip
    for number, mark in enumerate(marks(example), 1):
        at = (100 * mine.fraction[mark.last], mine.log_mrr[mark.last])
        large = mark == example.finding
        axes.plot(*at, marker="o", color=RED, markersize=5 if large else 2.5, clip_on=False, zorder=3)
        if large:
            ranks = " to ".join(str(rank or f"> {RULES.top}") for rank in (mark.rank_before, mark.rank_after))
            side = -1 if at[0] > 70 else 1
            axes.annotate(
                f"({number}) rank {ranks}", at, xytext=(7 * side, 5), textcoords="offset points", color=RED, fontsize=7,
                ha="left" if side > 0 else "right",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
            )  # fmt: skip
    axes.set_ylim(RULES.floor - 0.2, 0.3)
    axes.set_yticks([-4, -3, -2, -1, 0])
    axes.set_ylabel("log MRR (nats)")
    axes.set_xlim(0, 100)
    axes.tick_params(labelbottom=False)


def _red(axes: Axes, example: Example) -> None:
    """1 from where a word was written that stands for no source word until the next place a word was written at."""
    subject, place = example.subject, example.subject.place(example.finding)
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


def _words(axes: Axes, example: Example, height: float) -> None:
    """Every word written, side by side, with a line to its place on the axis above; the y axis is in points."""
    subject, place = example.subject, example.subject.place(example.finding)
    trace, errors = subject.trace(example.finding), subject.errors[place]
    steps = [step for step, emission in enumerate(trace.emissions) if emission.token]
    numbered = {mark.first: number for number, mark in enumerate(marks(example), 1)}
    axes.set_xlim(0, 100)
    axes.set_ylim(0, height)
    axes.axis("off")
    for i, step in enumerate(steps):
        x, bad = 100 * (i + 0.5) / len(steps), errors.unaligned[step]
        ends = [100 * subject.lines[place].fraction[step], x]
        axes.plot(ends, [height, height - LEADS], color=RED if bad else GREY, linewidth=0.8 if bad else 0.5)
        number = f"({numbered[step]}) " if step in numbered else ""
        axes.text(
            x, height - LEADS - 3, number + trace.emissions[step].token.replace("$", r"\$"), rotation=90, ha="center",
            va="top", fontsize=SIZE, color=RED if bad else "black",
            fontweight="bold" if errors.hallucinated[step] else "normal",
        )  # fmt: skip
    label = "source read (% of its characters), and every word written; red: it stands for no source word"
    axes.text(50, 0, label, ha="center", va="bottom", fontsize=8)
