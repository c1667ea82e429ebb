"""The viewer's page in a real browser: Chromium driven by Playwright; skipped where either is missing.

SQA_CHROMIUM names a browser that is not on the path; SQA_SCREENSHOTS a folder for pictures of the page.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from viewer_runs import CopyAligner, TrustJudge, make

from sqa.report import viewer_data
from sqa.report.viewer import main

BROWSER = os.environ.get("SQA_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the path, or named by SQA_CHROMIUM")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viewer")
    runs = [make(folder, "wait1"), make(folder, "wait3", k=3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(viewer_data, "load_aligner", lambda *_: CopyAligner())
        patch.setattr(viewer_data, "load_detector", lambda *_: TrustJudge())
        main(runs, folder / "page.html")
    return folder / "page.html"


@pytest.fixture
def open_page(browser: Any, page_file: Path) -> Iterator[Any]:
    """Opens the page at a hash; afterwards: no error was logged and nothing but the file was asked for."""
    contexts, problems = [], []

    def opened(hash: str = "", **context: Any) -> Any:
        made = browser.new_context(viewport={"width": 1280, "height": 1000}, **context)
        contexts.append(made)
        page = made.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", lambda asked: None if asked.url.startswith("file:") else problems.append(asked.url))
        page.goto(page_file.as_uri() + hash)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def visible(page: Any, system: int) -> str:
    spans = page.locator(".system").nth(system).locator(".translation span:not([hidden]):not(.later)")
    return " ".join(spans.all_text_contents())


def picture(page: Any, name: str) -> None:
    if folder := os.environ.get("SQA_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_scrubbing_shows_each_system_as_far_as_it_was(open_page: Any) -> None:
    page = open_page("#q=q0&m=0.0&a=wait1&b=wait3")
    assert (visible(page, 0), visible(page, 1)) == ("", "")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert (visible(page, 0), visible(page, 1)) == ("el país llamado Spain", "el país")
    assert page.locator("#source .read").count() == 4
    first, second = page.locator(".system").all()
    assert first.locator(".guesses tr.right td").first.text_content() == "✓ Spain"
    assert second.locator(".guesses tr.right").count() == 0
    assert "rank 1, log MRR 0.00" in first.locator(".rank figcaption").text_content()
    assert "first buzz at 36% of the source: right" in first.locator(".wins figcaption").text_content()
    assert page.locator("#clock").text_content() == "4 of 10 words read, 4 and 2 written"
    page.keyboard.press("Shift+ArrowRight")
    assert visible(page, 1) == "el país llamado Spain era grande"  # its last words come with the end of the sentence
    assert first.locator(".translation .bad:not(.later)").text_content().strip() == "grande"
    picture(page, "light")
    page.keyboard.press("Home")
    assert visible(page, 0) == ""
    page.keyboard.press("End")
    assert visible(page, 1).endswith("contra France después")
    assert "rank 2" in first.locator(".rank figcaption").text_content()


def test_questions_playing_and_the_second_system(open_page: Any) -> None:
    page = open_page("#q=q0&m=0.0")
    page.keyboard.press("ArrowDown")
    assert visible(page, 0) == "" and page.locator("#source").text_content().startswith("<b>uno</b> &amp; France")
    assert page.title() == "Simultaneous translation, word by word"  # the answer and the reference are hostile
    page.keyboard.press(" ")
    sync_api.expect(page.get_by_label("Pause")).to_be_visible()
    sync_api.expect(page.get_by_label("Play")).to_be_visible()
    assert page.locator("#clock").text_content() == "3 of 3 words read, 3 and 3 written"
    assert visible(page, 0) == "<b>uno</b> &amp; France"
    page.select_option("#right", "none")
    assert page.locator(".system").count() == 1
    page.keyboard.press("ArrowUp")  # the menu has the focus and keeps its keys
    page.locator("h1").click()
    page.select_option("#question", label="3. Atlantis (q2)")
    assert page.locator("#reference").text_content() == "nothing"


def test_a_link_leads_to_its_moment(open_page: Any, page_file: Path) -> None:
    page = open_page("#q=q0&m=4.0&a=wait3&b=-")
    assert visible(page, 0) == "el país"
    page.keyboard.press("ArrowRight")
    sync_api.expect(page).to_have_url(re.compile("m=5.0"))
    link = page.locator("#link").get_attribute("href")
    assert visible(open_page(link), 0) == "el país llamado"
    page.goto(page_file.as_uri() + "#q=q0&step=5&a=wait3")  # hashchange, without loading again
    sync_api.expect(page.locator("#clock")).to_have_text("6 of 10 words read, 6 written")
    assert visible(page, 0).endswith("era grande")
    assert page.locator("#problem").is_hidden()
    page.goto(page_file.as_uri() + "#q=nobody")
    assert page.locator("#problem").text_content() == "The address cannot be followed: this page has no “nobody”."
    page.locator(".system").first.locator(".findings button", has_text="drop: France").click()
    assert page.locator(".system").first.locator(".translation .now").text_content().strip() == "France"


def test_clicking_a_chart_goes_there(open_page: Any) -> None:
    page = open_page("#q=q0&m=0.0&a=wait1&b=-")
    over = page.locator(".rank .u-over")
    box = over.bounding_box()
    over.click(position={"x": box["width"] * 0.35, "y": 30})
    assert visible(page, 0) == "el país llamado Spain"
    over = page.locator(".wins .u-over")
    over.click(position={"x": over.bounding_box()["width"] - 1, "y": 30})
    assert page.locator("#clock").text_content().startswith("10 of 10")


def test_light_and_dark(open_page: Any) -> None:
    def paper(page: Any) -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    dark = open_page(color_scheme="dark")
    assert paper(dark) == "rgb(20, 23, 27)"
    assert dark.locator("#theme").get_attribute("aria-pressed") == "true"
    dark.keyboard.press("d")
    assert paper(dark) == "rgb(255, 255, 255)"
    light = open_page("#q=q0", color_scheme="light")
    assert paper(light) == "rgb(255, 255, 255)"
    light.locator("#theme").click()
    assert paper(light) == "rgb(20, 23, 27)"
    picture(light, "dark")


def test_every_control_has_a_name(open_page: Any) -> None:
    page = open_page("#q=q0")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, meter:not([hidden]), .plot")].filter((one) =>
            !(one.labels && one.labels.length) && !one.getAttribute("aria-label") && !one.textContent.trim())
            .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    slider = page.get_by_label("Moment")
    assert slider.get_attribute("aria-valuetext") == "10 of 10 words read, 10 and 10 written"
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".uplot").first.evaluate("one => one.clientWidth") < 400


def test_what_happens_at_the_very_end_is_drawn(open_page: Any) -> None:
    page = open_page("#q=q0&a=wait3&b=-")
    shown = """async () => {
        const trace = page.runs[1].traces[0];
        trace.z = trace.r.length - 1;  // the last of several steps at the end of the source
        open(null);
        await new Promise(requestAnimationFrame);  // charts are drawn after the script
        const plot = shown.systems[0].charts[1].plot, [first, last] = plot.series[3].idxs;
        return plot.data[3].slice(first, last + 1).filter((y) => y !== null).length;
    }"""
    assert page.evaluate(shown) == 1
