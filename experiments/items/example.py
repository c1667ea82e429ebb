"""The README's examples: what `sqa run` prints of the log of five questions, and what `sqa view` shows of one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from experiments.lab.item import Item, config_inputs, inputs_of
from experiments.lab.ledger import Ledger, Row
from sqa.core.paths import CONFIGS, ROOT
from sqa.files.digest import file_digest
from sqa.files.store import Store
from sqa.run.config import load_run
from sqa.run.folder import REPORT_HEADER, ReportRow, report_rows, save
from sqa.run.pipeline import run

if TYPE_CHECKING:
    from PIL import Image

EXAMPLE = "docs/example/mine.yaml"
LOG = ROOT / "docs/example/instances.log"
WATCHED, QUESTION, MOMENT = "mini_es_wait6_bm25.yaml", "mini-039-es", "37.30"  # words read, words written
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


def watched(config: Path, runs: Path) -> Iterator[Row]:
    """What the picture of the viewer shows of its question: the rank of the answer at each word written."""
    result = run(load_run(config), Store(runs), progress=False)
    [trace] = [trace for trace in result.traces if trace.question.id == QUESTION]
    for step, rank in enumerate(trace.rank):
        yield Row((QUESTION, str(step)), "rank", float(rank), n=1, unit="rank")


def screenshot(_: Ledger) -> Image.Image:
    """The viewer's page in Chromium (`SQA_CHROMIUM`, or on the PATH), at the moment when the answer becomes known."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    from sqa.report import viewer

    browser = os.environ.get("SQA_CHROMIUM") or shutil.which("chromium")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        runs = Path(folder)
        result = run(load_run(CONFIGS / WATCHED), Store(runs), progress=False)
        save(result, runs)
        viewer.main([runs / result.config.name], runs / "view.html")
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport={"width": 1440, "height": 1090}
        )
        page.goto(f"{(runs / 'view.html').as_uri()}#q={QUESTION}&m={MOMENT}&s=1")
        return Image.open(BytesIO(page.screenshot()))


ITEMS = (
    Item("example", "the README's example, as it is printed", "", (), measure, inputs, {"printed": printed}),
    Item(
        "viewer",
        "a question in `sqa view`, at the word that makes the answer known",
        WATCHED,
        ("question", "step"),
        watched,
        lambda config: {**config_inputs(config), **inputs_of(("es-en", "bm25", "buzzer-mlp-bm25"))(config)},
        figures={"docs/view.png": screenshot},
    ),
)
