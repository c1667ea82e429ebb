"""Figure 3: expected wins, translation quality and lag over k, for every translator and contestant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from experiments.grid import System
from experiments.results_book.item import Block, of_grid, values_of
from experiments.results_book.ledger import Ledger, Row
from experiments.results_book.pages import ledger_of
from experiments.results_book.tables import Column, columns, pivot, table
from sqa.api.experiment import COLUMNS, Cell
from sqa.core import FULL
from sqa.report import plots
from sqa.results import Frame

BEST = "rerank"
ES, PL = "xqb-es", "xqb-pl"
ANSWERS = columns("ew: EW", "oracle-ew: oracle EW", "accuracy")
TEXT = columns("bleu: BLEU", "dal: DAL", digits=1, interval=False)
KEPT = columns("names: names kept", "names@invented: invented", digits=2, interval=False)
HEADLINE = ("ew", "oracle-ew", "accuracy", "bleu")  # metrics of the claims, whose values are stored per question
PANELS = (("bleu", "BLEU"), ("ew", "expected wins"), ("oracle-ew", "oracle expected wins"))
MODEL = ("language model", "language model, no lexicon")
DRAWN = ("language model", "wait-k", "phrase-based", "apertium wait-k")  # each has its colour in every picture
HUMAN = "human, wait-k's pace"  # the reference line
NAMES = {"wait-k": "small Transformer", "apertium wait-k": "Apertium"}
PACES = {FULL: ("sentence by sentence", ":"), "diagonal": ("word by word", "-.")}  # k -> pace, line style
OVER_K, OVER_LAG = "k (source words read before the first target word)", "lag (DAL, source words)"
BANDS = "bands: one standard deviation where the legend gives trainings, else 95% over questions"

STORY = (  # name, data set, translator, values of k
    ("Spanish, language model", ES, "language model", ("1", "3", "full")),
    ("Spanish, language model without lexicon", ES, "language model, no lexicon", ("full",)),
    ("Spanish, phrase-based", ES, "phrase-based", ("6", "full")),
    ("Spanish, human translation", ES, "reference", ("full",)),
    ("Polish, language model", PL, "language model", ("1", "6", "full")),
    ("Polish, language model without lexicon", PL, "language model, no lexicon", ("full",)),
    ("Polish, phrase-based", PL, "phrase-based", ("2", "full")),
    ("Polish, human translation", PL, "reference", ("full",)),
)


def in_table(cell: Cell) -> bool:
    """Return whether a cell is a row of the headline table."""
    rows = {(dataset, translator, k) for _, dataset, translator, ks in STORY for k in ks}
    return cell.contestant == BEST and (cell.dataset, cell.family, str(cell.k)) in rows


def system_name(row: Row) -> str:
    """Return the language of a row's data set and the name of its translator, as in "es: Apertium"."""
    return f"{row['dataset'][-2:]}: {NAMES.get(row['translator'], row['translator'])}"


def by_system(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each `system_name`, in order of appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(system_name(row), []).append(row)
    return groups


def picked(
    heads: Sequence[str], picks: Iterable[tuple[Sequence[str], str, str, str]], shown: Sequence[Column]
) -> Block:
    """Return a block with one row for each pick: names, data set, translator, k."""
    cells = [
        (names, {"dataset": dataset, "translator": translator, "k": k, "contestant": BEST})
        for names, dataset, translator, k in picks
    ]
    return lambda ledger: table(ledger, heads, cells, shown)


def every_k(dataset: str, translators: Sequence[str]) -> Block:
    """Return a block with translators at every k."""
    return pivot(
        ("translator", "k"), [*ANSWERS, *TEXT, *KEPT], dataset=dataset, contestant=BEST, translator=translators
    )


def panel_over_k(title: str, rows: Iterable[Row], by: str, names: Sequence[str]) -> plots.Panel:
    """Return a panel of a metric, from rows of `Results.systems`, with a line for each value of a column.

    Full input and the human translation, whose legend gives its pace, are horizontal lines.  by: the column,
    "translator" or "contestant".  names: its values in the order of their colours.
    """
    rows = list(rows)
    systems = [row for row in rows if row["translator"] != "reference"]
    levels = []
    for row in rows:
        if row["translator"] == "reference":
            whose, number = ("", -1) if by == "translator" else (f"{row[by]}, ", names.index(row[by]))
            pace, dashes = PACES[row["k"]]
            levels.append(plots.Level(f"{whose}human translation, {pace}", number, row, dashes))
        elif row["k"] == FULL:
            label = f"{row[by]}, full input{plots.trained([int(row['trainings'])])}"
            levels.append(plots.Level(label, names.index(row[by]), row, band=row["trainings"] != "1"))
    lines = plots.lines((row for row in systems if row["k"] != FULL), by, "k", names, trainings="trainings")
    return plots.Panel(title, lines, levels=levels)


def axis_of_k(systems: Iterable[System]) -> str:
    """Return the label of the x axis, which names the translators whose k counts pieces of words."""
    pieces = dict.fromkeys(system.label for system in systems if system.translator.get("unit") == "piece")
    return f"{OVER_K}{'; pieces of words for ' * bool(pieces)}{' and '.join(pieces)}\n{BANDS}"


def in_colours(names: Iterable[str]) -> list[str]:
    """Return translators in the order of their colours: those of DRAWN at their places, and others behind them."""
    by_name = {name.lower(): name for name in names}
    places = DRAWN if by_name.keys() & {*DRAWN} else ()
    return [by_name.pop(key, "") for key in places] + list(by_name.values())


def figure3(ledger: Ledger, lag: bool = False) -> plots.Figure:
    """Draw quality, EW and oracle EW of every translator, a row of panels for each language.

    Over k, the human translation at wait-k's pace is drawn too, without a band.  lag: draw over the lag (DAL) of each
    k instead of over k.
    """
    drawn = DRAWN if lag else (*DRAWN, HUMAN)
    with_human = replace(ledger, rows=(*ledger.rows, *human_at_pace()))
    grid = []
    for dataset, language in ((ES, "Spanish"), (PL, "Polish")):
        rows = [r for r in with_human.where(dataset=dataset, contestant=BEST) if r["translator"] in drawn]
        lags = [row for row in rows if row.metric == "dal"] if lag else None
        panels: list[plots.Panel] = []
        for metric, above in PANELS:
            measured = [row for row in rows if row.metric == metric]
            lines = plots.lines(measured, "translator", "k", drawn, lambda name: NAMES.get(name, name), lags)
            panels.append(plots.Panel(above, lines, "" if panels else f"{language}, {measured[0].n} questions"))
        grid.append(panels)
    return plots.over_k(grid, OVER_LAG if lag else OVER_K, colours=(*plots.COLOURS[: len(DRAWN)], "black"))


def human_at_pace() -> list[Row]:
    """Return the item `human-at-pace` as rows of this grid."""
    human = ledger_of("human-at-pace").rows
    named = [replace(row, cell=(row["dataset"], HUMAN, row["k"], BEST), low=None, high=None) for row in human]
    return list(Frame(COLUMNS, named).rows)


ITEMS = (
    of_grid(
        "over-k",
        "expected wins, quality and lag over k (Figure 3)",
        values=values_of(HEADLINE, in_table),
        blocks={
            "story": picked(
                ["translator", "k"],
                (([name, k], dataset, translator, k) for name, dataset, translator, ks in STORY for k in ks),
                [ANSWERS[1], ANSWERS[2]._replace(interval=False), ANSWERS[0], *TEXT],
            ),
            **{f"lm-{name[-2:]}": every_k(name, MODEL) for name in (ES, PL)},
            **{f"pbmt-{name[-2:]}": every_k(name, ("phrase-based",)) for name in (ES, PL)},
        },
        figures={"docs/figure3.png": figure3, "docs/figure3_lag.png": partial(figure3, lag=True)},
    ),
)
