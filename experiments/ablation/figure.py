"""The ablation's two-panel figure: what answers gain (left) and what the translation gains (right) from waiting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from sqa.report.figure_style import COLOURS, GREY, PAGE, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.grid import Row

_NAMES = {"gru": "GRU", "bm25": "BM25"}
_LINES = (("ew", "-", "o", "EW"), ("oracle-ew", "--", "s", "oracle EW"))


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw one data set's rows; returns the PDF and the PNG."""
    from matplotlib import pyplot

    dataset, n = rows[0].cell.dataset, rows[0].n
    with style():
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(PAGE, 2.7), layout="constrained")
        _answers(left, rows)
        _translation(right, rows)
        left.set_title(f"(a) answering, {dataset}, {n} questions", loc="left")
        right.set_title("(b) translation", loc="left")
        return save(figure, folder, f"figure3_{dataset}")


def _ks(rows: Sequence[Row], family: str) -> list[int | str]:
    ks = dict.fromkeys(row.cell.k for row in rows if row.cell.family == family)
    return sorted(ks, key=lambda k: 10**9 if k == "full" else int(k))


def _line(axes: Axes, rows: Sequence[Row], ks: Sequence[int | str], metric: str, **look: object) -> list[float]:
    """One metric over k with its 95% band; returns the values."""
    by_k = {row.cell.k: row.intervals[metric] for row in rows}
    found = [by_k[k] for k in ks]
    x = range(len(ks))
    axes.fill_between(x, [i.low for i in found], [i.high for i in found], color=look["color"], alpha=0.12, linewidth=0)
    axes.plot(x, [i.value for i in found], **look)
    return [i.value for i in found]


def _answers(axes: Axes, rows: Sequence[Row]) -> None:
    """EW and oracle EW of the wait-k model for each guesser, and of the human translation at the right edge."""
    ks = _ks(rows, "wait-k")
    guessers = list(dict.fromkeys(row.cell.guesser for row in rows))
    lines = [line for line in _LINES if all(line[0] in row.intervals for row in rows)]
    for colour, guesser in zip(cycle(COLOURS), guessers, strict=False):
        mine = [row for row in rows if row.cell.guesser == guesser]
        ladder = [row for row in mine if row.cell.family == "wait-k"]
        human = next(row for row in mine if row.cell.family == "reference" and row.cell.k == "full")
        for metric, dash, marker, name in lines:
            label = f"{_NAMES.get(guesser, guesser)} {name}"
            _line(axes, ladder, ks, metric, color=colour, linestyle=dash, marker=marker, label=label)
            axes.plot(
                [len(ks)], [human.intervals[metric].value], color=colour, marker=marker, fillstyle="none", linestyle=""
            )
    axes.set_xticks(range(len(ks) + 1), [*map(str, ks), "human"])
    axes.set_xlabel("k (source words read first), human translation")
    axes.set_ylabel("expected wins")
    axes.set_ylim(bottom=0)
    if not lines:
        return _nothing(axes, " or ".join(line[0] for line in _LINES))
    axes.legend(ncols=2, loc="upper left", bbox_to_anchor=(0, 1.0), handlelength=2.6)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 1.3)  # room for the legend above the curves


def _nothing(axes: Axes, metric: str) -> None:
    """An empty panel that says why."""
    axes.text(0.5, 0.5, f"no {metric} in `metrics`", ha="center", va="center", transform=axes.transAxes)


def _translation(axes: Axes, rows: Sequence[Row]) -> None:
    """BLEU of every translator family; the lag of the wait-k model under each k."""
    one = [row for row in rows if row.cell.guesser == rows[0].cell.guesser]
    ks = _ks(one, "wait-k")
    known = all("bleu" in row.intervals for row in one)
    for family, colour in (("wait-k", COLOURS[2]), ("apertium wait-k", GREY)):
        mine = [row for row in one if row.cell.family == family]
        if mine and known:
            values = _line(axes, mine, ks, "bleu", color=colour, marker="o")
            axes.annotate(family, (len(ks) - 1, values[-1]), xytext=(4, 0), textcoords="offset points", color=colour,
                          va="center", fontsize=7, annotation_clip=False)  # fmt: skip
    waiting = [row for row in one if row.cell.family == "wait-k"]
    lag = {row.cell.k: row.intervals["dal"].value for row in waiting if "dal" in row.intervals}
    axes.set_xticks(range(len(ks)), [f"{k}\n{lag[k]:.1f}" if k in lag else str(k) for k in ks])
    axes.set_xlim(-0.3, len(ks) + 0.4)
    axes.set_xlabel("k, and the lag it gives the model (DAL, words)" if lag else "k")
    axes.set_ylabel("BLEU")
    axes.set_ylim(bottom=0)
    if not known:
        _nothing(axes, "bleu")
