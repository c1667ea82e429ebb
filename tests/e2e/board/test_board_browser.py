"""The board's page in a real browser: Chromium driven by Playwright; skipped where either is missing.

SQA_CHROMIUM names a browser that is not on the path; SQA_SCREENSHOTS a folder for pictures of the page.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import board_task
import pytest

BROWSER = os.environ.get("SQA_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")

from stand_ins.board_server import serving  # noqa: E402

from sqa.board import worker  # noqa: E402
from sqa.board.board import Board, BoardConfig  # noqa: E402

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the path, or named by SQA_CHROMIUM")
SCRIPT = "<script>document.title = 'broken'</script>"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    board = Board.open(BoardConfig(tmp_path_factory.mktemp("board"), tasks=("board_task:make",)))
    examples = json.loads(board_task.EXAMPLES)
    examples[0]["tags"] = [SCRIPT]
    board.register_dataset("toy", "data", json.dumps(examples), ["casing"])
    for name, answers in (("best", {"eins": "a", "zwei": "b", "DREI": "c", "EINS": "a"}), ("half", {"": "a"})):
        board.register_model("toy", name, "submission", json.dumps({"name": name, "answers": answers}).encode())
    worker.work(board, until_empty=True)
    with serving(board) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Any, url: str) -> Iterator[Any]:
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(url)
    # the page loads its first task by itself; another chosen before that is done, the two would overtake each other
    page.wait_for_selector("#state:has-text('evaluations')")
    page.select_option("#task", "toy")
    page.wait_for_selector("#state:has-text('4 evaluations')")
    page.wait_for_selector("#board tbody tr >> nth=1")
    page.color = request.param
    yield page
    context.close()
    assert not [problem for problem in problems if "status of 400" not in problem]


def models(page: Any) -> list[str]:
    return page.locator("#board tbody tr td:first-child").all_inner_texts()


@pytest.mark.slow
def test_weights_order_the_models_and_a_model_opens(page: Any) -> None:
    assert models(page) == ["best", "half"]
    with page.expect_response(lambda reply: "accuracy=0&" in reply.url.replace("%2C", "&").replace("%3D", "=")):
        page.fill("#weights input[name=accuracy]", "0")
        page.press("#weights input[name=accuracy]", "Tab")
    page.wait_for_function("document.querySelector('#board tbody td').innerText === 'half'")
    page.click("#board tbody button >> text=best")
    page.wait_for_selector("#detail h2 >> text=best")
    assert SCRIPT in page.locator("#tags td:first-child").all_inner_texts() and page.title() == "Evaluation board"
    assert "casing" in page.locator("#deltas").inner_text() and "no paired difference" in page.inner_text("#deltas")
    assert "4 evaluations, 0 to do" in page.inner_text("#state")
    if folder := os.environ.get("SQA_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder, f"board-{page.color}.png")), full_page=True)


@pytest.mark.slow
def test_a_wrong_request_is_told(page: Any) -> None:
    page.route("**/leaderboard?**", lambda route: route.fulfill(status=400, json={"detail": "no such weights"}))
    page.fill("#weights input[name=accuracy]", "2")
    page.press("#weights input[name=accuracy]", "Tab")
    page.wait_for_selector("#problem >> text=no such weights")
