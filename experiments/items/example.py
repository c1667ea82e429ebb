"""The README's example: what `sqa run` prints of the log of five questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Ledger, Row
from sqa.core.paths import ROOT
from sqa.files.digest import file_digest
from sqa.files.store import Store
from sqa.run.config import load_run
from sqa.run.folder import REPORT_HEADER, ReportRow, report_rows
from sqa.run.pipeline import run

EXAMPLE = "docs/example/mine.yaml"
LOG = ROOT / "docs/example/instances.log"
SHOWN = 6  # columns; the last one, the signatures, is cut off


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """The lines of its report."""
    for line in report_rows(run(load_run(ROOT / EXAMPLE), Store(runs), progress=False)):
        yield Row((), line.metric, line.value, line.low, line.high, line.n, line.unit, line.signature)


def printed(ledger: Ledger) -> list[str]:
    """The command and what it prints."""
    lines = [[f"$ sqa run {EXAMPLE} | cut -f 1-{SHOWN}"], REPORT_HEADER[:SHOWN]]
    lines += [
        ReportRow(r.metric, r.value, r.low, r.high, r.n, r.unit, r.signature).cells()[:SHOWN] for r in ledger.rows
    ]
    return ["```console", *("\t".join(line) for line in lines), "```"]


def inputs(config: Path) -> dict[str, str]:
    """The log and its config, the guesser and the buzzer."""
    files = {path.name: file_digest(path)[:12] for path in (ROOT / EXAMPLE, LOG)}
    return {**files, **inputs_of(("bm25", "buzzer-mlp-bm25"))(config)}


ITEM = Item("example", "the README's example, as it is printed", "", (), measure, inputs, {"printed": printed})
