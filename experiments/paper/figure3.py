"""Figure 3: expected wins, translation quality and lag over k, for every translator and contestant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from experiments.lab import grid_rows
from experiments.lab.ledger import Ledger
from experiments.lab.tables import Cell, columns, table
from sqa.report import plots

BEST = "rerank"
ES, PL = "xqb-es", "xqb-pl"
ANSWERS = columns("ew: EW", "oracle-ew: oracle EW", "accuracy")
TEXT = columns("bleu: BLEU", "dal: DAL", digits=1, interval=False)
PANELS = (("bleu", "BLEU"), ("ew", "expected wins"), ("oracle-ew", "oracle expected wins"))
DRAWN = ("language model", "phrase-based", "apertium wait-k", "wait-k")
NAMES = {"wait-k": "small Transformer", "apertium wait-k": "Apertium"}
OVER_K, OVER_LAG = "k (source words read before the first target word)", "lag (DAL, source words)"


def readme(ledger: Ledger) -> list[str]:
    """The README's table: eight systems that tell the story."""
    chosen: Sequence[tuple[str, tuple[str, str, str]]] = (
        ("Spanish, language model, wait-1", (ES, "language model", "1")),
        ("Spanish, language model, wait-3", (ES, "language model", "3")),
        ("Spanish, language model, full input", (ES, "language model", "full")),
        ("Spanish, phrase-based, wait-6", (ES, "phrase-based", "6")),
        ("Spanish, human translation at an interpreter's pace", (ES, "reference", "diagonal")),
        ("Polish, language model, wait-6", (PL, "language model", "6")),
        ("Polish, phrase-based, wait-2", (PL, "phrase-based", "2")),
        ("Polish, human translation at an interpreter's pace", (PL, "reference", "diagonal")),
    )
    rows = [([name], _cell(*where)) for name, where in chosen]
    return table(ledger, [f"contestant `{BEST}`"], rows, [*ANSWERS[:2], *TEXT])


def story(ledger: Ledger) -> list[str]:
    """The table of results: the language model where its curves begin, peak and end, and people."""
    rows = []
    for dataset, name, translator, ks in (
        (ES, "Spanish, language model", "language model", ("1", "3", "full")),
        (ES, "Spanish, language model without lexicon", "language model, no lexicon", ("full",)),
        (ES, "Spanish, phrase-based", "phrase-based", ("6", "full")),
        (ES, "Spanish, human translation", "reference", ("diagonal",)),
        (PL, "Polish, language model", "language model", ("1", "6", "full")),
        (PL, "Polish, language model without lexicon", "language model, no lexicon", ("full",)),
        (PL, "Polish, phrase-based", "phrase-based", ("2", "full")),
        (PL, "Polish, human translation", "reference", ("diagonal",)),
    ):
        rows += [([name, k], _cell(dataset, translator, k)) for k in ks]
    return table(ledger, ["translator", "k"], rows, [*ANSWERS, *TEXT])


def every_k(ledger: Ledger, dataset: str, contestant: str = BEST) -> list[str]:
    """Every translator at every k, one data set and contestant."""
    return table(ledger, ["translator", "k"], _ladder(ledger, dataset, contestant), [*ANSWERS, *TEXT])


def card(ledger: Ledger, dataset: str, start: str) -> list[str]:
    """What a model's card shows: its rows and those of its variants, with the names that it keeps and invents."""
    names = columns("names: names kept", "names@invented: invented", digits=2, interval=False)
    rows = [row for row in _ladder(ledger, dataset, BEST) if row[0][0].startswith(start)]
    return table(ledger, ["translator", "k"], rows, [*ANSWERS, *TEXT, *names])


def _ladder(ledger: Ledger, dataset: str, contestant: str) -> Iterator[tuple[list[str], Cell]]:
    for _, translator, k, _ in dict.fromkeys(r.cell for r in ledger.where(dataset=dataset, contestant=contestant)):
        yield [translator, k], _cell(dataset, translator, k, contestant)


def _cell(dataset: str, translator: str, k: str, contestant: str = BEST) -> Cell:
    return {"dataset": dataset, "translator": translator, "k": k, "contestant": contestant}


def drawn_over(
    ledger: Ledger,
    rows: Sequence[tuple[str, str, str]],
    drawn: Sequence[str],
    lag: bool = False,
    names: Mapping[str, str] = MappingProxyType({}),
    title: str = "",
) -> plots.Figure:
    """Draw a row of panels for each (data set, contestant, label): quality, expected wins and oracle expected wins.

    Metrics that were not measured have no panel.  lag: draw over the lag of each k (DAL), in place of k.  names: the
    names of translators in the legend, where they differ from their labels.
    """
    grid = []
    for dataset, contestant, label in rows:
        rows_drawn = [row for row in ledger.where(dataset=dataset, contestant=contestant) if row.cell[1] in drawn]
        lags = [row for row in rows_drawn if row.metric == "dal"] if lag else None
        panels: list[plots.Panel] = []
        for metric, above in PANELS:
            measured = [row for row in rows_drawn if row.metric == metric]
            if measured:
                lines = plots.lines(measured, 1, 2, drawn, lambda name: names.get(name, name), lags)
                panels.append(plots.Panel(above, lines, "" if panels else f"{label}, {measured[0].n} questions"))
        grid.append(panels)
    return plots.over_k(grid, OVER_LAG if lag else OVER_K, title=title)


figure3 = partial(drawn_over, rows=[(ES, BEST, "Spanish"), (PL, BEST, "Polish")], drawn=DRAWN, names=NAMES)
ITEMS = (
    grid_rows.of_grid(
        "over-k",
        "expected wins, quality and lag over k (Figure 3)",
        blocks={
            "readme": readme,
            "story": story,
            **{f"lm-{name[-2:]}": partial(card, dataset=name, start="language model") for name in (ES, PL)},
            **{f"pbmt-{name[-2:]}": partial(card, dataset=name, start="phrase-based") for name in (ES, PL)},
        },
        figures={"docs/figure3.png": figure3, "docs/figure3_lag.png": partial(figure3, lag=True)},
    ),
    grid_rows.of_grid("names-copied", "a bonus on the spelling of names that were read", config="studies.yaml:names"),
)
