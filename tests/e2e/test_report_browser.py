"""The report's page in a real browser, light and dark; skipped where Chromium or Playwright is missing.

SQA_CHROMIUM names a browser that is not on the path; SQA_SCREENSHOTS a folder for pictures of the page.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from viewer_runs import make

from sqa.report.report import main

BROWSER = os.environ.get("SQA_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the path, or named by SQA_CHROMIUM")


def test_the_page_opens_without_a_request_in_both_schemes(tmp_path: Path) -> None:
    metrics = {"metrics": ["ew", "oracle-ew", "bleu", "dal"]}
    main([make(tmp_path, f"wait{k}", k=k, **metrics) for k in (1, 3)], tmp_path / "report")
    address = (tmp_path / "report" / "report.html").as_uri()
    problems: list[str] = []
    seen = {}
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme).new_page()
            page.on("console", lambda message: problems.append(message.text))
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on(
                "request",
                lambda asked: None if asked.url.startswith(("file:", "data:")) else problems.append(asked.url),
            )
            page.goto(address)
            images = page.locator("img")
            assert images.count() == 3
            widths = images.evaluate_all("images => images.map(image => image.naturalWidth)")
            assert all(width > 100 for width in widths)
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            seen[scheme] = (background, images.first.evaluate("image => image.currentSrc"))
            assert page.locator("h2", has_text="Not computed, and why").count() == 1
            assert page.locator("td.number").first.evaluate("cell => getComputedStyle(cell).textAlign") == "right"
            if folder := os.environ.get("SQA_SCREENSHOTS"):
                page.screenshot(path=Path(folder) / f"report-{scheme}.png", full_page=True)
        browser.close()
    assert problems == []
    assert seen["light"][0] == "rgb(255, 255, 255)"
    assert seen["dark"][0] == "rgb(20, 23, 27)"
    assert seen["light"][1] != seen["dark"][1]  # the figures change with the page
