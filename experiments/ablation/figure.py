"""The ablation's two-panel figure: what answers gain (left) and what the translation gains (right) from waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from string import ascii_letters
from typing import TYPE_CHECKING

from sqa.report.figure_style import COLOURS, GREY, PAGE, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.grid import Row
    from sqa.core.significance import Interval

LETTERS = ascii_letters  # of the panels
_NAMES = {"gru": "GRU", "bm25": "BM25", "rerank": "reranked"}
_LINES = (("ew", "-", "o", "EW"), ("oracle-ew", "--", "s", "oracle EW"))


def draw(everything: Sequence[Row], dataset: str, folder: Path) -> list[Path]:
    """Draw one data set's rows, a panel for each translator and one for all their BLEU; returns the PDF and the PNG.

    `everything` are the rows of all data sets: a translator has the same colour in every figure.
    """
    from matplotlib import pyplot

    rows = [row for row in everything if row.cell.dataset == dataset]
    n, colours = rows[0].n, _colours(everything)
    families = ladders(rows)
    wide, high = 2, -(-(max(1, len(families)) + 1) // 2)
    with style():
        figure, grid = pyplot.subplots(
            high, wide, figsize=(PAGE, 0.5 + 2.4 * high), layout="constrained", squeeze=False
        )
        panels, several = list(grid.flat), high * wide > 2
        for letter, family, axes in zip(LETTERS, families or ["no translator"], panels, strict=False):
            _answers(axes, rows, family)
            title = f"answering: {family}" if several else f"answering, {dataset}, {n} questions"
            axes.set_title(f"({letter}) {title}", loc="left")
        used = max(1, len(families))
        _same_height(panels[:used])
        if panels[0].get_legend_handles_labels()[0]:
            named = panels[0].get_legend_handles_labels()
            figure.legend(*named, loc="outside lower center", ncols=max(2, len(_guessers(rows))))
        _translation(panels[used], rows, families, colours)
        panels[used].set_title(f"({LETTERS[used]}) translation", loc="left")
        for axes in panels[used + 1 :]:
            axes.set_visible(False)
        if several:
            figure.suptitle(f"{dataset}, {n} questions")
        return save(figure, folder, f"figure3_{Path(dataset).name}")


def ladders(rows: Sequence[Row]) -> list[str]:
    """The translators with more than one k, trained ones with seeds apart, in the order of the config."""
    ks: dict[str, set[int | str]] = {}
    for row in rows:
        if row.cell.family != "reference" and row.cell.seed is None:
            ks.setdefault(row.cell.family, set()).add(row.cell.k)
    return [family for family, values in ks.items() if len(values) > 1]


def _same_height(panels: Sequence[Axes]) -> None:
    """One scale for all panels of expected wins."""
    top = max(axes.get_ylim()[1] for axes in panels)
    for axes in panels:
        axes.set_ylim(0, top)


def _ks(rows: Sequence[Row], family: str) -> list[int | str]:
    ks = dict.fromkeys(row.cell.k for row in rows if row.cell.family == family)
    return sorted(ks, key=lambda k: 10**9 if k == "full" else int(k))


def _line(axes: Axes, rows: Sequence[Row], ks: Sequence[int | str], metric: str, **look: object) -> list[float]:
    """One metric over k with its 95% band; returns the values."""
    by_k = {row.cell.k: row.intervals[metric] for row in rows}
    x = [place for place, k in enumerate(ks) if k in by_k]
    found = [by_k[ks[place]] for place in x]
    axes.fill_between(x, [i.low for i in found], [i.high for i in found], color=look["color"], alpha=0.12, linewidth=0)
    axes.plot(x, [i.value for i in found], **look)
    return [i.value for i in found]


def _colours(rows: Sequence[Row]) -> dict[str, str]:
    """Of the translators; the guessers have the first ones, and a colour means one thing in a figure."""
    return dict(zip(ladders(rows), cycle([*COLOURS[len(_guessers(rows)) :], GREY]), strict=False))


def _guessers(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.cell.guesser for row in rows))


def _answers(axes: Axes, rows: Sequence[Row], family: str) -> None:
    """EW and oracle EW of a translator for each guesser, and of the human translation at the right edge, with bars."""
    ks = _ks(rows, family)
    guessers = _guessers(rows)
    lines = [line for line in _LINES if all(line[0] in row.intervals for row in rows)]
    for place, (colour, guesser) in enumerate(zip(cycle(COLOURS), guessers, strict=False)):
        mine = [row for row in rows if row.cell.guesser == guesser]
        ladder = [row for row in mine if row.cell.family == family and row.cell.seed is None]
        human = next(row for row in mine if row.cell.family == "reference" and row.cell.k == "full")
        for metric, dash, marker, name in lines:
            label = f"{_NAMES.get(guesser, guesser)} {name}"
            if ladder:
                _line(axes, ladder, ks, metric, color=colour, linestyle=dash, marker=marker, label=label)
            beside = 0.03 * len(ks) * (place - (len(guessers) - 1) / 2)
            _human(axes, len(ks) + beside, human.intervals[metric], colour, marker)
    axes.set_xticks(range(len(ks) + 1), [*map(str, ks), "human"])
    axes.set_xlabel("k (source words read first); human translation")
    axes.set_ylabel("expected wins")
    if not ks:
        _nothing(axes, "no translator with several k")
    elif not lines:
        _nothing(axes, f"no {' or '.join(line[0] for line in _LINES)} in `metrics`")


def _human(axes: Axes, x: float, interval: Interval, colour: str, marker: str) -> None:
    """A hollow marker with its 95% interval."""
    ends = [[interval.value - interval.low], [interval.high - interval.value]]
    axes.errorbar(
        [x], [interval.value], yerr=ends, color=colour, marker=marker, fillstyle="none", linestyle="", elinewidth=0.8,
        capsize=1.5,
    )  # fmt: skip


def _nothing(axes: Axes, why: str) -> None:
    """A panel without curves says why."""
    axes.text(0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes)


def _translation(axes: Axes, rows: Sequence[Row], families: Sequence[str], colours: Mapping[str, str]) -> None:
    """BLEU of every translator over its k, named at its end; under each k the lag it gives the first of them."""
    one = [row for row in rows if row.cell.guesser == rows[0].cell.guesser and row.cell.seed is None]
    ks = max((_ks(one, family) for family in families), key=len, default=[])
    known = all("bleu" in row.intervals for row in one)
    ends: list[tuple[float, str, str]] = []
    for family in families:
        colour = colours[family]
        mine = [row for row in one if row.cell.family == family and row.cell.k in ks]
        if known:
            values = _line(axes, mine, ks, "bleu", color=colour, marker="o")
            ends.append((max(values), family, colour))
    if not families or not known:
        _nothing(axes, "no bleu in `metrics`" if families else "no translator with several k")
        return
    waiting = [row for row in one if row.cell.family == families[0]]
    lag = {row.cell.k: row.intervals["dal"].value for row in waiting if "dal" in row.intervals}
    axes.set_xticks(range(len(ks)), [f"{k}\n{lag[k]:.1f}" if k in lag else str(k) for k in ks])
    axes.set_xlim(-0.3, len(ks) - 0.7)
    axes.set_xlabel("k, and the lag it gives the first (DAL, words)" if lag else "k")
    axes.set_ylabel("BLEU")
    axes.set_ylim(0, max(end[0] for end in ends) * 1.45)
    handles = [axes.plot([], [], color=colour, marker="o", label=family)[0] for _, family, colour in ends]
    axes.legend(handles=handles, loc="upper left", ncols=1)
