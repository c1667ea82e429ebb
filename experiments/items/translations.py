"""Figure 8: quality and lag of every translator on the questions and on news."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.lab.item import Item, dataset_digests, digest_of, model_digests
from experiments.lab.ledger import Ledger, Row
from experiments.lab.tables import number
from experiments.studies import translation_table
from experiments.studies.translation_report import figure_of
from experiments.studies.translation_rows import Row as Measured
from experiments.studies.translation_table import METRICS, TableConfig
from sqa import metrics as metric_names
from sqa.core.significance import Interval
from sqa.files.store import Store
from sqa.report import markdown
from sqa.run.config import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("6", "full", "-")  # values of k in the table


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """A row for each metric of each translator, k and test set."""
    rows, _ = translation_table.measure(load(config_path, TableConfig), Store(runs))
    built = {metric.name: metric for metric in metric_names.build(METRICS)}
    for row in rows:
        cell = (row.test, row.unit, row.label, "-" if row.k is None else str(row.k))
        for name, i in row.intervals.items():
            yield Row(cell, name, i.value, i.low, i.high, row.n, built[name].unit, row.signatures[name])


def inputs(config_path: Path) -> dict[str, str]:
    """Digests of the config, of its models and of the question sets."""
    config = load(config_path, TableConfig)
    named = {f"config {config_path.name}": digest_of(config), **model_digests(config)}
    return named | dataset_digests(test.name for test in config.sets if test.name.startswith("xqb"))


def block(ledger: Ledger) -> list[str]:
    """BLEU of each translator at wait-6 and on full input, a column for each test set."""
    tests = ledger.values("test")
    systems = dict.fromkeys(row.cell[2:] for row in ledger.rows if row.cell[3] in SHOWN)
    lines = []
    for translator, k in systems:
        at = {"-": "", "full": ", full input"}.get(k, f", wait-{k}")
        found = [ledger.one("bleu", test=test, translator=translator, k=k) for test in tests]
        lines.append([f"{translator}{at}", *(number(row, 1) if row else "" for row in found)])
    sizes = [f"{test} ({ledger.where('bleu', test=test)[0].n})" for test in tests]
    return markdown.table(["BLEU", *sizes], lines)


def figure(ledger: Ledger) -> Figure:
    """Quality over lag."""
    cells = dict.fromkeys(row.cell for row in ledger.rows)
    rows = []
    for test, unit, label, k in cells:
        found = ledger.where(test=test, translator=label, k=k)
        intervals = {row.metric: Interval(row.value, row.low, row.high, row.n) for row in found}
        at = None if k == "-" else int(k) if k.isdigit() else k
        rows.append(Measured(test, unit, found[0].n, label, at, intervals, {}, 0, 0, 0))
    return figure_of(rows)


ITEM = Item(
    name="translations",
    shows="quality and lag of every translator on questions and news (Figure 8)",
    config="translation_table.yaml",
    columns=("test", "unit", "translator", "k"),
    measure=measure,
    inputs=inputs,
    blocks={"bleu": block},
    figures={"docs/figure8.png": figure},
)
