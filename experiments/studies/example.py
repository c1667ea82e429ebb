"""Examples for the documentation: the report of `sqa run` on a log, and screenshots of `sqa view` and `sqa play`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from experiments.lab.item import Item, config_inputs, inputs_of
from experiments.lab.ledger import Ledger, Row
from sqa.core.errors import DataError
from sqa.core.paths import CONFIGS, ROOT
from sqa.files.atomic import file_digest
from sqa.files.store import Store
from sqa.pipeline.config import load_run, with_limit
from sqa.pipeline.engine import run
from sqa.pipeline.saving import COUNTED, report, save
from sqa.results import Frame

if TYPE_CHECKING:
    from PIL import Image
    from playwright.sync_api import Page

EXAMPLE = "docs/example/mine.yaml"
LOG = ROOT / "docs/example/instances.log"
WATCHED, QUESTION, MOMENT = "mini_es_wait6_bm25.yaml", "mini-039-es", "37.30"  # MOMENT: words read, words written
PLAYED = (  # (condition to wait for, keys to press): agree, start a game against the system, buzz, answer "Peru"
    ("document.activeElement.id == 'agree'", ["Enter"]),
    ("document.activeElement.id == 'run'", ["Tab", "ArrowDown", "Tab", "Tab", "Tab", "1", "Enter"]),
    ("document.activeElement.id == 'next'", ["Enter"]),
    ("document.querySelector('#words').textContent.split(' ').length >= 20", [" "]),
    ("document.activeElement.id == 'answer'", [*"Peru", "Enter"]),
)
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
    return {**files, **inputs_of(("bm25", "buzzer-mlp-bm25"))(config)}


def watched(config: Path, runs: Path) -> Iterator[Row]:
    """Yield the rank of the answer after each written word of the question in the screenshot."""
    result = run(load_run(config), Store(runs), progress=False)
    [trace] = [trace for trace in result.traces if trace.question.id == QUESTION]
    for step, rank in enumerate(trace.rank):
        yield Row((QUESTION, str(step)), "rank", float(rank), n=1, unit="rank")


@contextmanager
def _page(folder: str, limit: int | None, **options: Any) -> Iterator[tuple[Page, Path]]:
    """Yield a Chromium page (`SQA_CHROMIUM`, or from the PATH) and the folder of a run; `limit` None: all questions."""
    from playwright.sync_api import sync_playwright

    config = load_run(CONFIGS / WATCHED)
    config = config if limit is None else with_limit(config, limit)
    finished = save(run(config, Store(Path(folder)), progress=False), Path(folder))
    browser = os.environ.get("SQA_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(**options), finished


def _picture(page: Page) -> Image.Image:
    from PIL import Image

    return Image.open(BytesIO(page.screenshot()))


def screenshot(_: Ledger) -> Image.Image:
    """Return the viewer's page at the moment when the answer becomes known."""
    from sqa.report import viewer

    with TemporaryDirectory() as folder, _page(folder, None, viewport={"width": 1440, "height": 1090}) as (page, shown):
        viewer.main([shown], shown / "view.html")
        page.goto(f"{(shown / 'view.html').as_uri()}#q={QUESTION}&m={MOMENT}&s=1")
        return _picture(page)


def game(_: Ledger) -> Image.Image:
    """Play the first question of `sqa play` against the system by keyboard; return the page after the answer."""
    options = {"viewport": {"width": 900, "height": 700}, "color_scheme": "dark"}
    with (
        TemporaryDirectory() as folder,
        _page(folder, 1, **options) as (page, shown),
        _played(shown, folder) as address,
    ):
        page.goto(address)
        for waits, keys in PLAYED:
            page.wait_for_function(f"() => {waits}")
            for key in keys:
                page.keyboard.press(key)
        page.wait_for_selector("#result:not([hidden])")
        return _picture(page)


@contextmanager
def _played(shown: Path, folder: str) -> Iterator[str]:
    """Serve a run with `sqa play serve` and yield the address; raises DataError if the server ends at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "sqa", "play", "serve", shown, "--games", f"{folder}/games", "--port", port]
    with subprocess.Popen([*map(str, command)]) as server:
        try:
            while not _listens(port):
                if server.poll() is not None:
                    raise DataError("`sqa play serve` ended early; its own message gives the reason")
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


ITEMS = (
    Item("example", "output of the README's example", "", (), measure, inputs, {"printed": printed}),
    Item(
        "viewer",
        "screenshots of `sqa view` at the word that reveals the answer, and of `sqa play` after the answer",
        WATCHED,
        ("question", "step"),
        watched,
        lambda config: {**config_inputs(config), **inputs_of(("es-en", "bm25", "buzzer-mlp-bm25"))(config)},
        figures={"docs/view.png": screenshot, "docs/play.png": game},
    ),
)
