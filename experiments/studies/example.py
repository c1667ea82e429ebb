"""Examples for the documentation: the report of `sqa run` on a log, and a screenshot of `sqa view`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Ledger, Row
from sqa.core import CONFIGS, ROOT
from sqa.files import Store, file_digest
from sqa.pipeline import COUNTED, load_run, report, run, save
from sqa.results import Frame

if TYPE_CHECKING:
    from PIL import Image

EXAMPLE = "docs/example/mine.yaml"
LOG = ROOT / "docs/example/instances.log"
WATCHED, QUESTION, MOMENT = "mini_es_wait6_bm25.yaml", "mini-039-es", "37.30"  # MOMENT: words read, words written
SHOWN = 4  # number of columns


def measure(_: Path, runs: Path) -> Sequence[Row]:
    """Return the rows of the example's report."""
    return report(run(load_run(ROOT / EXAMPLE), Store(runs), progress=False)).rows


def printed(ledger: Ledger) -> list[str]:
    """Return a console block with the command and its output."""
    rows = (replace(row, value=int(row.value)) if row.unit in COUNTED else row for row in ledger.rows)
    lines = ("\t".join(line[:SHOWN]) for line in Frame((), tuple(rows)).table().text)
    return ["```console", f"$ sqa run {EXAMPLE} | cut -f 1-{SHOWN}", *lines, "```"]


def inputs(config: Path) -> dict[str, str]:
    """Return digests of the log, its config, the guesser and the buzzer."""
    files = {path.name: file_digest(path)[:12] for path in (ROOT / EXAMPLE, LOG)}
    return {**files, **inputs_of(("bm25", "mlp", "buzzer-mlp-bm25"))(config)}


def watched(config: Path, runs: Path) -> Iterator[Row]:
    """Yield the rank of the answer after each written word of the question in the screenshot."""
    result = run(load_run(config), Store(runs), progress=False)
    [trace] = [trace for trace in result.traces if trace.question.id == QUESTION]
    for step, rank in enumerate(trace.rank):
        yield Row((QUESTION, str(step)), "rank", float(rank), n=1, unit="rank")


def screenshot(_: Ledger) -> Image.Image:
    """Return the viewer's page in Chromium (`SQA_CHROMIUM`, or from the PATH) when the answer becomes known."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    from sqa.report import viewer

    browser = os.environ.get("SQA_CHROMIUM") or shutil.which("chromium")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        shown = save(run(load_run(CONFIGS / WATCHED), Store(Path(folder)), progress=False), Path(folder))
        viewer.main([shown], shown / "view.html")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1440, "height": 1210})
        page.goto(f"{(shown / 'view.html').as_uri()}#q={QUESTION}&m={MOMENT}&s=1")
        return Image.open(BytesIO(page.screenshot()))


ITEMS = (
    Item("example", "output of the README's example", "", (), measure, inputs, {"printed": printed}),
    Item(
        "viewer",
        "screenshot of `sqa view` at the word that reveals the answer",
        WATCHED,
        ("question", "step"),
        watched,
        inputs_of(("waitk", "es-en", "bm25", "mlp", "buzzer-mlp-bm25")),
        figures={"docs/view.png": screenshot},
    ),
)
