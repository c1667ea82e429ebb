"""Primary analysis: do the texts of a translator at different k win differently when all are shown at the same pace?

Expected wins falls with delay for any text, so two k are compared at one pace.  From k = 2, in each language:

    own text          EW of wait-k's text at its own pace
    full-input text   EW of the full-input text at wait-k's pace
    human text        EW of the human translation at wait-k's pace: the reference line
    pace              EW of the full-input text at wait-k's pace minus at full input's pace: the cost of waiting
    text              EW of wait-k's text minus the full-input text, both at wait-k's pace: the benefit of waiting, if
                      negative

The test of a translator is two-sided; its statistic is the largest |text| over k.  Under the null hypothesis the texts
of a question are exchangeable, so they are permuted at random within each question, at all paces together.  Holm
corrects over the two languages.  The translator is the bundled wait-k Transformer, which every checkout can run.
The first version of this module (commit 81c82ebd) tested wait-k and the phrase-based system at k = 2, 3 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from experiments.grid import AblationConfig
from experiments.paper.figure3 import BEST, DRAWN, by_system, system_name
from experiments.results_book.item import finished_grid, of_grid
from experiments.results_book.ledger import Ledger, Row, after_holm, measured
from experiments.results_book.tables import Column, number, table
from experiments.studies.delay_or_text import rescheduled
from sqa import metrics as metric_names
from sqa.api.experiment import Cell
from sqa.core import FULL, Floats, K, Metric, QuestionTrace, null_of, p_value
from sqa.pipeline import load
from sqa.report import plots
from sqa.results import markdown

DATASETS, TRANSLATOR = ("xqb-es", "xqb-pl"), "wait-k"
KS: tuple[K, ...] = (2, 6, FULL)
OWN, FULL_TEXT, HUMAN, PACE, TEXT = "own text", "full-input text", "human text", "pace", "text"
ALPHA, PERMUTATIONS = 0.05, 20_000
EW, ORACLE = metric_names.build(["ew", "oracle-ew"])
TEXTS = [Column("{metric}", part, interval=False, cell={"part": part}) for part in (OWN, FULL_TEXT, HUMAN)]
GAPS = [Column("ew", f"{part} alone", sign=True, cell={"part": part}) for part in (PACE, TEXT)]


def at_pace(traces: Sequence[QuestionTrace], k: K, metric: Metric = EW) -> Floats:
    """Return a metric's statistics (n, d) if the words of the traces are shown at wait-k's pace.

    At k = "full", a sentence is shown when its whole source has been read.
    """
    return np.stack([metric.stats(rescheduled(trace, 10_000 if k == FULL else int(k))) for trace in traces])


def read(config_path: Path, runs: Path) -> dict[str, tuple[Floats, list[QuestionTrace]]]:
    """Return for each data set EW's statistics (n, texts, paces, 2), and the traces of the human translation."""

    def wanted(cell: Cell) -> bool:
        of_human = (cell.family, cell.k) == ("reference", FULL)
        return cell.contestant == BEST and (of_human or (cell.family == TRANSLATOR and cell.k in KS))

    traces = {(r.cell.dataset, r.cell.family, r.cell.k): r.run.traces for r in finished_grid(config_path, runs, wanted)}
    found = {}
    for dataset in DATASETS:
        table = [[at_pace(traces[dataset, TRANSLATOR, text], pace) for pace in KS] for text in KS]
        found[dataset] = np.moveaxis(np.array(table), 2, 0), traces[dataset, "reference", FULL]
    return found


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield the EW of each text, the differences, and the p-values before and after Holm."""
    tests = []
    for dataset, (stats, human) in read(config_path, runs).items():
        for i, k in enumerate(KS):
            own, of_full = stats[:, i, i], stats[:, -1, i]
            texts = {OWN: (own,), FULL_TEXT: (of_full,), HUMAN: (at_pace(human, k),)}
            gaps = {PACE: (of_full, stats[:, -1, -1]), TEXT: (own, of_full)}
            for part, tables in (texts | gaps).items():
                yield measured((dataset, TRANSLATOR, str(k), part), EW, *tables)
        tests.append(Row((dataset, TRANSLATOR, "from 2", TEXT), "p", p_of(stats), n=len(stats), unit="p"))
    yield from (*tests, *after_holm(tests))


def human_line(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield EW and oracle EW of the human translation at the pace of every k of the grid."""
    grid = finished_grid(config_path, runs, lambda c: (c.contestant, c.family, c.k) == (BEST, "reference", FULL))
    for result, k in product(grid, load(config_path, AblationConfig).k):
        yield from (measured((result.dataset, str(k)), m, at_pace(result.run.traces, k, m)) for m in (EW, ORACLE))


def values(config_path: Path, runs: Path) -> dict[tuple[str, ...], Floats]:
    """Return the EW statistics of each question, by (data set, translator, k of the text, k of the pace, "ew")."""
    tables: dict[tuple[str, ...], Floats] = {}
    found = read(config_path, runs)
    for dataset, (stats, _) in found.items():
        for (i, text), (j, pace) in product(enumerate(KS), enumerate(KS)):
            tables[dataset, TRANSLATOR, str(text), str(pace), "ew"] = stats[:, i, j]
    for (dataset, (_, human)), k in product(found.items(), KS):
        tables[dataset, "human", FULL, str(k), "ew"] = at_pace(human, k)
    return tables


# ---------------------------------------------------------------------------------------------------------- the test


def p_of(table: Floats, permutations: int = PERMUTATIONS) -> float:
    """Return the p-value of the largest |text| over k, from EW's statistics (n, texts, paces, 2), full input last."""

    def largest(sums: Floats) -> Floats:  # (b, texts, 2 * paces) -> (b, 1)
        scores = EW.score_many(sums.reshape(-1, 2)).reshape(*sums.shape[:2], -1)
        return np.abs(np.diagonal(scores, axis1=1, axis2=2) - scores[:, -1]).max(axis=1, keepdims=True)

    flat = table.reshape(*table.shape[:2], -1)
    return float(p_value(largest(flat.sum(axis=0)[None])[0], null_of(flat, largest, permutations, 0))[0])


# ------------------------------------------------------------------------------------------------ tables and figure


def block(ledger: Ledger) -> list[str]:
    """Return the Markdown table of the analysis, with a row for each translator and k."""
    own = [row for row in ledger.where("ew", part=OWN) if row["k"] != FULL]  # full input has only its own text and pace
    cells = [{"metric": "ew"} | {name: row[name] for name in ("dataset", "translator", "k")} for row in own]
    names = [(system_name(row), row["k"]) for row in own]
    return table(ledger, ("translator", "k"), zip(names, cells, strict=True), [*TEXTS, *GAPS])


def verdicts(ledger: Ledger) -> list[str]:
    """Return the Markdown table of the tests."""
    lines = []
    for row in ledger.where("p after Holm"):
        dataset, translator = row["dataset"], row["translator"]
        rows = [r for r in ledger.where("ew", dataset=dataset, translator=translator, part=TEXT) if r["k"] != FULL]
        largest = max(rows, key=lambda r: abs(r.value))
        plain = ledger.one("p", dataset=dataset, translator=translator)
        held = "held" if row.value <= ALPHA else "not held"
        lines.append([system_name(row), largest["k"], number(largest, sign=True), number(plain), number(row), held])
    return markdown(("translator", "k", "largest text alone", "p", "p (Holm)", "verdict"), lines)


def figure(ledger: Ledger) -> plots.Figure:
    """Draw the EW of the three texts at wait-k's pace over k, with a panel for each translator and language."""
    texts = (OWN, FULL_TEXT, HUMAN)
    systems = by_system(row for row in ledger.where("ew") if row["part"] in texts)
    panels = [plots.Panel(title, plots.lines(rows, "part", "k", texts)) for title, rows in systems.items()]
    colours = (plots.COLOURS[DRAWN.index("wait-k")], plots.COLOURS[4], "black")
    return plots.over_k([panels], "k: each text is shown at wait-k's pace", ylabel="expected wins", colours=colours)


ITEMS = (
    of_grid(
        "text-at-pace",
        "primary analysis: texts of different k at the same pace, from k = 2",
        columns=("dataset", "translator", "k", "part"),
        measure=measure,
        values=values,
        blocks={"table": block, "verdicts": verdicts},
        figures={"docs/text_at_pace.png": figure},
    ),
    of_grid(
        "human-at-pace",
        "the human translation at wait-k's pace: the reference line of Figure 3",
        columns=("dataset", "k"),
        measure=human_line,
    ),
)
