"""The pages of the viewer and the report in Chromium, driven by Playwright; skipped if either program is missing.

SQA_CHROMIUM is the path of a browser that is not on the PATH. SQA_SCREENSHOTS is a folder for screenshots. SQA_AXE is
the path of axe.min.js of the npm package axe-core, which then checks these pages and the pages of a built site.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from needs import missing
from stand_ins.viewer_runs import CopyAligner, TrustJudge, make

from sqa.api.views import Page
from sqa.core import ROOT
from sqa.report import viewer_data
from sqa.report.report import main as report
from sqa.report.viewer import main

sync_api = pytest.importorskip("playwright.sync_api", reason=missing("browser"))


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viewer")
    drops = {"name": "doubles:build_dropper"}
    runs = [make(folder, "wait1"), make(folder, "wait3", k=3), make(folder, "drops", translator=drops)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(viewer_data, "load_aligner", lambda *_: CopyAligner())
        patch.setattr(viewer_data, "load_detector", lambda *_: TrustJudge())
        main(runs, folder / "page.html")
    return folder / "page.html"


@pytest.fixture
def open_page(browser: Any, page_file: Path) -> Iterator[Any]:
    """Yield a function that opens a file (default: the viewer) at a URL fragment.

    After the test, check that no page logged an error or sent a request over the network.
    """
    contexts, problems = [], []

    def opened(hash: str = "", file: Path = page_file, **context: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 1000}, **context))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or problems.append(asked.url))
        page.goto(file.as_uri() + hash)
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


def test_scrubbing_shows_each_system_at_its_progress(open_page: Any) -> None:
    page = open_page("#q=q0&m=0.0&a=wait1&b=wait3&s=1")
    assert (visible(page, 0), visible(page, 1)) == ("", "")
    assert page.locator(".system").first.locator(".guesses td").first.text_content() == "no guess yet"
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert (visible(page, 0), visible(page, 1)) == ("el país llamado Spain", "el país")
    assert page.locator("#source .read").count() == 4
    first, second = page.locator(".system").all()
    assert first.locator(".guesses tr.right td").first.text_content() == "✓ Spain"
    assert second.locator(".guesses tr.right").count() == 0
    assert "rank 1, log reciprocal rank 0.00" in first.locator(".rank figcaption").text_content()
    assert "first buzz at 36% of the source: right" in first.locator(".wins figcaption").text_content()
    assert page.locator("#clock").text_content() == "4 of 10 words read, 4 and 2 written"
    page.keyboard.press("Shift+ArrowRight")
    assert visible(page, 1) == "el país llamado Spain era grande"  # the last words come at the sentence's end
    assert first.locator(".translation .bad:not(.later)").text_content().strip() == "grande"
    picture(page, "light")
    page.keyboard.press("Home")
    assert visible(page, 0) == ""
    page.keyboard.press("End")
    assert visible(page, 1).endswith("contra France después")
    assert "rank 2" in first.locator(".rank figcaption").text_content()


def test_page_opens_at_the_first_word_of_the_first_question(open_page: Any) -> None:
    """Regression test: it opened at the end, where the right arrow key has no effect."""
    page = open_page()
    clock = page.locator("#clock").text_content()
    assert visible(page, 0) and not clock.startswith("10 of 10")
    page.keyboard.press("ArrowRight")
    assert page.locator("#clock").text_content() != clock


def test_playback_and_second_system_work(open_page: Any) -> None:
    page = open_page("#q=q0&m=0.0")
    page.keyboard.press("ArrowDown")
    assert visible(page, 0) == "<b>uno</b>"
    assert page.locator("#source").text_content().startswith("<b>uno</b> &amp; France")
    assert page.title() == "Simultaneous translation, word by word"  # HTML in the questions is not executed
    page.evaluate(  # playback may end before the next check, so the page records each change of the button's name
        """() => { const button = document.querySelector("#play"); document.body.dataset.names = "";
        new MutationObserver(() => { document.body.dataset.names += button.getAttribute("aria-label") + "."; })
            .observe(button, {attributeFilter: ["aria-label"]}); }"""
    )
    page.keyboard.press(" ")
    sync_api.expect(page.locator("body")).to_have_attribute("data-names", "Pause.Play.")
    assert page.locator("#clock").text_content() == "3 of 3 words read, 3 and 3 written"
    assert visible(page, 0) == "<b>uno</b> &amp; France"
    page.select_option("#right", "none")
    assert page.locator(".system").count() == 1
    page.keyboard.press("ArrowUp")  # the menu has the focus and keeps its keys
    page.locator("h1").click()
    page.select_option("#question", label="3. q2")
    assert page.locator("#reference").text_content() == "nothing"


def test_link_opens_its_step(open_page: Any, page_file: Path) -> None:
    page = open_page("#q=q0&m=4.0&a=wait3&b=-")
    assert visible(page, 0) == "el país"
    page.keyboard.press("ArrowRight")
    sync_api.expect(page).to_have_url(re.compile("m=5.0"))
    link = page.locator("#link").get_attribute("href")
    assert visible(open_page(link), 0) == "el país llamado"
    page.goto(page_file.as_uri() + "#q=q0&step=5&a=wait3")  # changes only the hash, so the page is not reloaded
    sync_api.expect(page.locator("#clock")).to_have_text("6 of 10 words read, 6 written")
    assert visible(page, 0).endswith("era grande")
    assert page.locator("#problem").is_hidden()
    page.goto(page_file.as_uri() + "#q=nobody")
    refused = "The address cannot be followed: this page has no “nobody”."
    sync_api.expect(page.locator("#problem")).to_have_text(refused)  # the browser dispatches hashchange later
    page.locator(".system").first.locator(".findings button", has_text="drop: France").click()
    assert page.locator(".system").first.locator(".translation .now").text_content().strip() == "France"


def test_inline_viewer_of_a_notebook_needs_no_address(open_page: Any, page_file: Path) -> None:
    inline = page_file.with_name("notebook.html")
    inline.write_text(Page(page_file.read_text("utf-8"), 700)._repr_html_(), encoding="utf-8")
    page = open_page(file=inline)
    frame = page.frame_locator("iframe")
    before = frame.locator("#clock").text_content()
    frame.locator("#source").click()
    page.keyboard.press("ArrowLeft")
    sync_api.expect(frame.locator("#clock")).not_to_have_text(before)


def test_clicking_a_chart_moves_to_that_step(open_page: Any) -> None:
    page = open_page("#q=q0&m=0.0&a=wait1&b=-")
    over = page.locator(".rank .u-over")
    box = over.bounding_box()
    over.click(position={"x": box["width"] * 0.365, "y": 30})  # "Spain" ends at 21 of 59 characters
    assert visible(page, 0) == "el país llamado Spain"
    page.select_option("#axis", "written")
    over.click(position={"x": box["width"] * 0.25, "y": 30})
    assert visible(page, 0) == "el país llamado"
    page.select_option("#axis", "words")
    over.click(position={"x": box["width"] * 0.5, "y": 30})
    assert visible(page, 0) == "el país llamado Spain era"
    over = page.locator(".wins .u-over")
    over.click(position={"x": over.bounding_box()["width"] - 1, "y": 30})
    assert page.locator("#clock").text_content().startswith("10 of 10")


def test_every_control_has_a_name(open_page: Any) -> None:
    page = open_page("#q=q0")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, meter:not([hidden]), .plot")].filter((one) =>
            !(one.labels && one.labels.length) && !one.getAttribute("aria-label") && !one.textContent.trim())
            .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    slider = page.get_by_label("Moment")
    assert slider.get_attribute("aria-valuetext") == "1 of 10 words read, 1 and 0 written"
    page.set_viewport_size({"width": 400, "height": 800})
    # the charts are redrawn after the resize event, which the browser dispatches later
    sync_api.expect(page.locator("html")).to_have_js_property("scrollWidth", 400)
    assert page.locator(".uplot").first.evaluate("one => one.clientWidth") < 400


def test_systems_share_the_source_axis_and_its_switch(open_page: Any) -> None:
    page = open_page("#q=q0&m=5.9&a=wait1&b=wait3")
    drawn = """async () => { await new Promise(requestAnimationFrame); return shown.systems.map((system) => {
        const plot = system.charts[0].plot, here = system.box.querySelector(".rank .here").getBoundingClientRect();
        return [plot.scales.x.min, plot.scales.x.max, here.left - plot.over.getBoundingClientRect().left,
                plot.data[0].filter((x) => x >= 0 && x <= plot.scales.x.max)];
    }); }"""
    first, second = page.evaluate(drawn)
    assert first[:2] == second[:2] == [-0.005, 1.005]
    assert abs(first[2] - second[2]) < 0.01 and first[2] > 10  # the same step is at the same x position
    letters = [2, 7, 15, 21, 25, 32, 37, 44, 51, 59]
    assert first[3] == pytest.approx([n / 59 for n in [*letters, 59]])  # flat after the last word
    assert second[3] == pytest.approx([n / 59 for n in [15, 21, 25, 32, 32, 32, 51, 59, 59, 59, 59]])
    page.keyboard.press("x")
    first, second = page.evaluate(drawn)
    assert first[:2] == second[:2] == pytest.approx([-0.05, 10.05]) and first[3] == [*range(1, 11), 10]
    page.keyboard.press("x")
    first, second = page.evaluate(drawn)
    assert first[:2] == [0.5, 10.5] and first[3] == list(range(1, 11))
    sync_api.expect(page).to_have_url(re.compile("x=written"))
    link = page.locator("#link").get_attribute("href")
    assert open_page(link).locator("#axis").input_value() == "written"


def test_answer_is_shown_on_request(open_page: Any) -> None:
    page = open_page("#q=q0&m=4.0&a=wait1&b=-")
    page_text = "() => document.body.innerText + [...document.querySelectorAll('option')].map((one) => one.text)"
    assert "→ ?" in page.evaluate(page_text) and "→ Spain" not in page.evaluate(page_text)
    assert not any(mark in page.evaluate(page_text) for mark in ("✓", "Atlantis", ": right", ": wrong"))
    dot = "() => shown.systems[0].charts[1].plot.series[3].stroke()"
    hidden = page.evaluate(dot)
    page.get_by_role("button", name="Show answer").click()
    assert page.locator("#source .answer").text_content() == "→ Spain"
    assert "3. Atlantis (q2)" in page.evaluate(page_text) and "✓ Spain" in page.evaluate(page_text)
    assert "first buzz at 36% of the source: right" in page.evaluate(page_text) and page.evaluate(dot) != hidden
    sync_api.expect(page).to_have_url(re.compile("s=1"))
    page.keyboard.press("a")
    assert "→ Spain" not in page.evaluate(page_text) and page.evaluate(dot) == hidden


def test_errors_links_and_threshold_are_shown(open_page: Any) -> None:
    page = open_page("#q=q0&m=10.9&a=drops&b=wait1")
    lost = page.locator("#source .lost0")
    assert lost.all_text_contents() == ["llamado", "Spain", "era", "grande"]
    assert page.locator("#source .lost1").count() == 0
    assert page.locator("#omitted").text_content() == "dashed line below: left out by drops"
    page.keyboard.press("Home")
    assert lost.count() == 0  # no source word has been read yet
    page.keyboard.press("End")
    page.locator("#source span", has_text="France").hover()
    picture(page, "left-out")
    assert page.locator(".pointed").all_text_contents() == ["France", "France", "France"]  # in both translations
    page.locator(".system").nth(1).locator(".translation span", has_text="Spain").hover()
    assert page.locator(".pointed").all_text_contents() == ["Spain", "Spain"]
    page.locator("#clock").hover()
    assert page.locator(".pointed").count() == 0
    line = "() => shown.systems[0].charts[1].plot.data[4].filter((y) => y !== null)"
    assert page.evaluate(line) == [0.5, 0.5]  # a horizontal line across the chart
    assert "threshold 0.500" in page.locator(".wins .plot").first.get_attribute("aria-label")


PAPER = "getComputedStyle(document.body).backgroundColor"
SHOWN = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}


def test_report_page_makes_no_request_in_both_schemes(open_page: Any, tmp_path: Path) -> None:
    metrics = {"metrics": ["ew", "oracle-ew", "bleu", "dal"]}
    report([make(tmp_path, f"wait{k}", k=k, **metrics) for k in (1, 3)], tmp_path / "report")
    for scheme in ("light", "dark"):
        page = open_page(file=tmp_path / "report" / "report.html", color_scheme=scheme)
        images = page.locator("img")
        widths = images.evaluate_all("images => images.map(image => image.naturalWidth)")
        assert len(widths) == 3 and min(widths) > 100
        assert page.evaluate(PAPER) == SHOWN[scheme]
        assert page.locator("h2", has_text="Not computed, and why").count() == 1
        assert page.locator("td.number").first.evaluate("cell => getComputedStyle(cell).textAlign") == "right"
        picture(page, f"report-{scheme}")


@pytest.mark.needs("SQA_AXE")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(browser: Any, page_file: Path, tmp_path: Path, scheme: str) -> None:
    report([make(tmp_path, f"wait{k}", k=k, metrics=["al", "ew"]) for k in (1, 3)], tmp_path / "report")
    addresses = [page_file.as_uri() + f"#q=q0&m=1.0&a=wait1&b=wait3&s={step}" for step in (1, 4, 9)]
    addresses.append((tmp_path / "report" / "report.html").as_uri())
    site = [ROOT / "site" / f"{name}.html" for name in ("index", "api", "python")]
    addresses += [page.as_uri() for page in site if page.is_file()]
    axe = Path(os.environ["SQA_AXE"]).read_text("utf-8")
    page = browser.new_page(color_scheme=scheme)
    serious = []
    for address in addresses:
        page.goto(address)
        page.reload()  # `goto` with another hash does not reload the page
        page.evaluate(f"{axe}; 0")  # the pages' content security policy forbids script elements
        for found in page.evaluate("axe.run()")["violations"]:
            if found["impact"] in ("serious", "critical"):
                serious.append((address, found["help"], [node["html"] for node in found["nodes"]]))
    page.close()
    assert serious == []
