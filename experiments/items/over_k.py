"""Figure 3: expected wins, translation quality and lag over k, for every translator and contestant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger
from experiments.lab.tables import Cell, Column, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEST = "rerank"
ES, PL = "xqb-es", "xqb-pl"
ANSWERS = (Column("ew", "EW"), Column("oracle-ew", "oracle EW"), Column("accuracy", "accuracy"))
TEXT = (Column("bleu", "BLEU", 1, interval=False), Column("dal", "DAL", 1, interval=False))


def order(k: int | str) -> float:
    """The place of a k among others: full input last."""
    return float(k) if str(k).isdigit() else float("inf")


def readme(ledger: Ledger) -> list[str]:
    """The README's table: eight systems that tell the story."""
    chosen: Sequence[tuple[str, tuple[str, str, str]]] = (
        ("Spanish, language model, wait-1", (ES, "language model", "1")),
        ("Spanish, language model, wait-6", (ES, "language model", "6")),
        ("Spanish, language model, full input", (ES, "language model", "full")),
        ("Spanish, small Transformer, wait-3", (ES, "wait-k", "3")),
        ("Spanish, human translation at an interpreter's pace", (ES, "reference", "diagonal")),
        ("Polish, language model, wait-3", (PL, "language model", "3")),
        ("Polish, language model, full input", (PL, "language model", "full")),
        ("Polish, human translation at an interpreter's pace", (PL, "reference", "diagonal")),
    )
    rows = [([name], _cell(*where)) for name, where in chosen]
    return table(ledger, [f"contestant `{BEST}`"], rows, [*ANSWERS[:2], *TEXT])


def over_k(ledger: Ledger, dataset: str, contestant: str = BEST) -> list[str]:
    """Every translator at every k, one data set and contestant."""
    return table(ledger, ["translator", "k"], _ladder(ledger, dataset, contestant), [*ANSWERS, *TEXT])


def _ladder(ledger: Ledger, dataset: str, contestant: str) -> Iterator[tuple[list[str], Cell]]:
    for row in ledger.where("bleu", dataset=dataset, contestant=contestant):
        _, translator, k, _ = row.cell
        yield [translator, k], _cell(dataset, translator, k, contestant)


def _cell(dataset: str, translator: str, k: str, contestant: str = BEST) -> Cell:
    return {"dataset": dataset, "translator": translator, "k": k, "contestant": contestant}


PANELS = (("bleu", "BLEU"), ("ew", "expected wins"), ("oracle-ew", "oracle expected wins"))
DRAWN = {"language model": 0, "apertium wait-k": 1, "wait-k": 2}  # translator -> its colour
NAMES = {"wait-k": "small Transformer", "apertium wait-k": "Apertium"}


def by_k(ledger: Ledger) -> Figure:
    """Quality, expected wins and oracle expected wins over k, a row of panels for each language."""
    return _figure(ledger, lag=False)


def by_lag(ledger: Ledger) -> Figure:
    """The same over the lag that each k gives (DAL)."""
    return _figure(ledger, lag=True)


def _figure(ledger: Ledger, lag: bool) -> Figure:
    from matplotlib import pyplot

    from sqa.report.figure_style import PAGE

    figure, grid = pyplot.subplots(2, 3, figsize=(PAGE, 4.1), layout="constrained", sharex=not lag)
    for row, (dataset, language) in zip(grid, ((ES, "Spanish"), (PL, "Polish")), strict=True):
        n = ledger.where("bleu", dataset=dataset)[0].n
        for axes, (metric, label) in zip(row, PANELS, strict=True):
            for translator in DRAWN:
                _line(axes, ledger, dataset, translator, metric, lag)
            axes.set_title(f"{language} ({n} questions): {label}", loc="left")
            axes.set_ylim(bottom=0)
    xlabel = "lag (DAL, source words)" if lag else "k (source words read before the first target word)"
    figure.supxlabel(xlabel, fontsize=8)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _line(axes: Axes, ledger: Ledger, dataset: str, translator: str, metric: str, lag: bool) -> None:
    """One translator's values with their 95% intervals."""
    from sqa.report.figure_style import COLOURS

    rows = ledger.where(metric, dataset=dataset, translator=translator, contestant=BEST)
    rows.sort(key=lambda row: order(row.cell[2]))
    if not rows:
        return
    ks = sorted({r.cell[2] for r in ledger.where(metric, dataset=dataset) if r.cell[1] in DRAWN}, key=order)
    if lag:
        x = [ledger.one("dal", **dict(zip(ledger.columns, row.cell, strict=True))).value for row in rows]
    else:
        x = [ks.index(row.cell[2]) for row in rows]
        axes.set_xticks(range(len(ks)), ks)
    colour = COLOURS[DRAWN[translator]]
    axes.fill_between(x, [row.low for row in rows], [row.high for row in rows], color=colour, alpha=0.12, linewidth=0)
    axes.plot(x, [row.value for row in rows], color=colour, marker="o", label=NAMES.get(translator, translator))


ITEM = Item(
    name="over-k",
    shows="expected wins, quality and lag over k (Figure 3)",
    config="ablation.yaml",
    columns=grid_rows.COLUMNS,
    measure=grid_rows.measure,
    inputs=grid_rows.inputs,
    blocks={
        "readme": readme,
        "spanish": lambda ledger: over_k(ledger, ES),
        "polish": lambda ledger: over_k(ledger, PL),
    },
    figures={"docs/figure3.png": by_k, "docs/figure3_lag.png": by_lag},
)
