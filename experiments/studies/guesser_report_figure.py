"""What the guessers' report writes: TSV, Table 1, Markdown, and the figure of accuracy over the question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.drawing import End, label_ends
from experiments.studies.guesser_rows import ALL, GUESSABLE, MEASURES
from sqa import __version__
from sqa.files.store import write_text
from sqa.metrics.curve import curve_named
from sqa.report import markdown
from sqa.report.figure_style import COLOURS, COLUMN, save, style
from sqa.run.folder import tsv

if TYPE_CHECKING:
    from experiments.studies.guesser_rows import Report, ReportConfig, Row

STEM = "guessers_accuracy"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_FRACTIONS_SHOWN = 5  # columns of the report's tables over the question


def table(report: Report, fractions: Sequence[float]) -> str:
    """A TSV text: one line per guesser, data set, group and fraction; "n/a" where there is no question."""
    header = ["dataset", "group", "questions", "guesser", "fraction"]
    header += [f"{measure}{part}" for measure in MEASURES for part in ("", ".low", ".high")]
    header.append("note")
    lines = []
    for row in report.rows:
        for place, fraction in enumerate(fractions):
            cells = [row.dataset, row.group, str(row.n), row.guesser, f"{fraction:g}"]
            for measure in MEASURES:
                found = row.at(measure, place)
                cells += ["n/a"] * 3 if found is None else [f"{x:.6f}" for x in found]
            lines.append([*cells, ""])
    blank = ["n/a"] * (3 * len(MEASURES) + 1)
    lines += [["all", ALL, "n/a", out.label, *blank, f"left out: {out.reason}"] for out in report.left_out]
    return tsv(header, lines)


def table1(report: Report) -> str:
    """A TSV text: one line per data set."""
    labels = list(report.fingerprints)
    header = ["dataset", "questions", "source_words", "english_words", "pages"]
    header += [*(f"guessable.{label}" for label in labels), "guessable.nobody"]
    lines = []
    for line in report.datasets:
        cells = [line.dataset, str(line.questions), f"{line.source_words:.2f}", f"{line.english_words:.2f}"]
        known = [*(line.guessable[label] for label in labels), line.nobody]
        lines.append([*cells, str(line.pages), *("n/a" if n is None else str(n) for n in known)])
    return tsv(header, lines)


# ------------------------------------------------------------------------------------------------------- report


def write_report(report: Report, config: ReportConfig, path: Path) -> Path:
    """The report to read: Table 1, a section per data set, what was left out, what was measured."""
    parts = [
        "# Guessers", "",
        "The text is the English one that a person wrote. EW: what a buzz at that point would win, 0 if the top guess",
        "is wrong. In brackets 95% bootstrap intervals over questions.", "",
        f"![accuracy over the question]({STEM}.png)",
        "", "## Table 1: the questions", "", *_table1(report),
    ]  # fmt: skip
    for line in report.datasets:
        rows = [row for row in report.rows if row.dataset == line.dataset]
        parts += ["", f"## {line.dataset} ({line.questions} questions)", "", "### Complete questions", ""]
        parts += _complete(rows)
        parts += ["", "### Over the question", "", *_over(rows, config.fractions)]
        parts += ["", "### By category", "", *_categories(rows, config.fractions)]
    if report.left_out:
        parts += ["", "## Left out", "", *(f"- {out.label}: {out.reason}" for out in report.left_out)]
    how = f"input:human-english|pos:target-char|top:50|curve:{curve_named(config.curve).name}"
    how += f"|resamples:{config.resamples}|seed:{config.seed}|v:{__version__}"
    parts += ["", "## Signatures", "", f"- `{'/'.join(MEASURES)}|{how}`"]
    parts += [f"- {label}: fingerprint `{mark[:16]}`" for label, mark in report.fingerprints.items()]
    write_text(path, "\n".join(parts) + "\n")
    return path


def _cell(found: tuple[float, float, float] | None) -> str:
    return "n/a" if found is None else "{:.3f} [{:.3f}, {:.3f}]".format(*found)


def _table1(report: Report) -> list[str]:
    labels = list(report.fingerprints)
    lines = markdown.head(["data set", "questions", "source words", "English words", "answer pages",
                   *(f"guessable by {label}" for label in labels), "by nobody"])  # fmt: skip
    for line in report.datasets:
        cells = [line.dataset, str(line.questions), f"{line.source_words:.1f}", f"{line.english_words:.1f}"]
        cells.append(str(line.pages))
        for n in (*(line.guessable[label] for label in labels), line.nobody):
            cells.append("n/a" if n is None else f"{n} ({n / line.questions:.1%})")
        lines.append(markdown.row(cells))
    return [
        *lines,
        "",
        "Words are per question. Guessable: questions whose answer page is among the pages the guesser can name;",
        "the others count as wrong everywhere but in the rows called guessable. n/a: the guesser does not say which",
        "pages it has.",
    ]


def _complete(rows: Sequence[Row]) -> list[str]:
    lines = markdown.head(["guesser", "questions", "n", "accuracy at 1", "at 10", "at 50", "MRR", "EW"])
    for row in rows:
        if row.group in (ALL, GUESSABLE):
            lines.append(markdown.row([row.guesser, row.group, str(row.n), *(_cell(row.at(m, -1)) for m in MEASURES)]))
    return lines


def _over(rows: Sequence[Row], fractions: Sequence[float]) -> list[str]:
    """A few of the fractions, evenly picked, the last one among them."""
    count = min(_FRACTIONS_SHOWN, len(fractions))
    places = [len(fractions) * (i + 1) // count - 1 for i in range(count)]
    lines = markdown.head(["guesser", "measure", *(f"{fractions[place]:.0%}" for place in places)])
    for row in rows:
        if row.group == ALL:
            for measure in MEASURES:
                lines.append(markdown.row([row.guesser, measure, *(_cell(row.at(measure, place)) for place in places)]))
    return lines


def _categories(rows: Sequence[Row], fractions: Sequence[float]) -> list[str]:
    groups = [group for group in dict.fromkeys(row.group for row in rows) if group not in (ALL, GUESSABLE)]
    if not groups:
        return ["The data have no categories."]
    labels = list(dict.fromkeys(row.guesser for row in rows))
    by_place = {(row.group, row.guesser): row for row in rows}
    half = min(range(len(fractions)), key=lambda place: abs(fractions[place] - 0.5))
    shown = (("acc@1", -1, "acc@1"), ("mrr", -1, "MRR"), ("ew", half, f"EW at {fractions[half]:.0%}"))
    lines = markdown.head(["category", "n", *(f"{label}: {name}" for label in labels for _, _, name in shown)])
    for group in groups:
        cells = [group, str(by_place[group, labels[0]].n)]
        cells += [_cell(by_place[group, label].at(measure, place)) for label in labels for measure, place, _ in shown]
        lines.append(markdown.row(cells))
    return [*lines, "", "Accuracy and MRR on complete questions."]


# ------------------------------------------------------------------------------------------------------- figure


def draw(report: Report, fractions: Sequence[float], folder: Path) -> list[Path]:
    """Accuracy at 1 over the question, a panel per data set, one column wide; returns the PDF and the PNG."""
    from matplotlib import pyplot

    x = [100 * fraction for fraction in fractions]
    labels = list(report.fingerprints)
    with style():
        size = (COLUMN, 0.5 + 1.5 * len(report.datasets))
        figure, grid = pyplot.subplots(
            len(report.datasets), 1, figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
        )
        for axes, line in zip(grid[:, 0], report.datasets, strict=True):
            axes.set_title(f"{line.dataset}, {line.questions} questions, 95% bands", loc="left")
            axes.set_ylabel("accuracy at 1")
            axes.set_xlim(0, 100)
        grid[-1, 0].set_ylim(0, max(row.band.high[len(x) - 1] for row in report.rows if row.group == ALL) * 1.05)
        grid[-1, 0].set_xlabel("question read (% of its characters)")
        for axes, line in zip(grid[:, 0], report.datasets, strict=True):
            ends = {}
            for row in (row for row in report.rows if (row.dataset, row.group) == (line.dataset, ALL)):
                place = labels.index(row.guesser)
                colour, marker = COLOURS[place % len(COLOURS)], _MARKERS[place % len(_MARKERS)]
                curve, low, high = (part[: len(x)] for part in (row.band.value, row.band.low, row.band.high))
                axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
                axes.plot(x, curve, color=colour, marker=marker, clip_on=False)
                ends[row.guesser] = End(float(curve[-1]), colour)
            label_ends(axes, ends)
        return save(figure, folder, STEM)
