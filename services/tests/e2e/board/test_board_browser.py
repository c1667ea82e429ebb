"""The board's page in Chromium, driven by Playwright; skipped if either is missing.

SQA_CHROMIUM names a browser that is not on the path.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import board_task
import pytest
from board_task import Row, submission
from stand_ins.board_server import SUBMIT, serving

from sqa.core import Question
from sqa_services.board import worker
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.storage import as_lines
from sqa_services.net.guard import Address

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


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Any]:
    context = browser.new_context(color_scheme="dark", viewport={"width": 1400, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(url)
    # The page loads its first task on its own. Choosing another task before it has loaded would be a race.
    page.wait_for_selector("#state:has-text('evaluations')")
    page.select_option("#task", "toy")
    page.wait_for_selector("#state:has-text('4 evaluations')")
    page.wait_for_selector("#board tbody tr >> nth=1")
    yield page
    context.close()
    assert not problems


def models(page: Any) -> list[str]:
    return page.locator("#board tbody tr td:nth-child(2)").all_inner_texts()


# --------------------------------------------------------------------------------------------------- a new visitor


def known(right: int) -> list[dict[str, Any]]:
    """Return the submission of a wait-3 copier that answers the first `right` questions correctly, at their end."""

    def rows(q: Question, i: int) -> Iterator[Row]:
        for step, word in enumerate(q.words):
            g = min(step + 3, len(q.words))
            sure = g == len(q.words)
            yield word, g, q.page if sure and i < right else f"page {i}", sure

    return submission(rows)


def visitor(browser: Any, url: str, width: int) -> Any:
    page = browser.new_context(
        viewport={"width": width, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
    ).new_page()
    page.goto(url)
    page.wait_for_selector("#inputs a", state="attached")
    return page


def fits(page: Any) -> bool:
    """Return whether every part of the page fits into the window."""
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.slow
def test_visitor_signs_in_and_submits(browser: Any, board: Board, tmp_path: Path) -> None:
    board.register_dataset("sqa-es", "mini", "mini-es")
    for name, rows in (("first", known(40)), ("other", known(0))):
        board.register_model("sqa-es", name, "submission", as_lines(rows))
    worker.work(board, until_empty=True)
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_bytes(as_lines(known(20)))
    bad.write_text("{")
    with serving(board, Address(token="of-the-owners-token", submit_token=SUBMIT)) as url:
        page = visitor(browser, url, 400)
        page.click("#submitting summary")
        assert page.is_hidden("#upload")
        page.fill("#sign-in [name=token]", SUBMIT)
        page.click("#sign-in button")
        page.wait_for_selector("#who >> text=Signed in as submitter")
        page.click("#copy")
        page.wait_for_selector("#copy >> text=Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.inner_text("#command") and copied.startswith("curl -T submission.jsonl -H 'Authorization")
        assert f"{url}/api/tasks/sqa-es/models/NAME" in copied

        page.fill("#upload [name=name]", "mine")
        page.set_input_files("#upload [name=file]", bad)
        page.click("#upload button")
        page.wait_for_selector("#problem >> text=not JSON")
        page.set_input_files("#upload [name=file]", good)
        page.click("#upload button")
        page.wait_for_selector("#detail h2 >> text=mine")
        assert "Nothing is being evaluated" in page.inner_text("#worker")
        assert fits(page)

        worker.work(board, until_empty=True)
        page.reload()
        page.wait_for_selector("#board tbody tr >> nth=2")
        ranks = dict(zip(models(page), page.locator("#board tbody tr td:first-child").all_inner_texts(), strict=True))
        assert ranks == {"first": "1", "mine": "2", "other": "3"}
        page.click("#board tbody button >> text=mine")
        page.wait_for_selector("#log >> text=mini: done")
        assert fits(page)

        assert page.inner_text("#actions") == ""
        page.click("#submitting summary")  # the reload closed it
        page.click("#sign-out")
        page.fill("#sign-in [name=token]", "of-the-owners-token")
        page.click("#sign-in button")
        page.wait_for_selector("#who >> text=Signed in as owner")
        page.on("dialog", lambda dialog: dialog.accept())
        page.click("#actions >> text=Delete")
        page.wait_for_selector("#board tbody tr >> nth=1")
        page.wait_for_selector("#board tbody button >> text=mine", state="detached")
        assert models(page) == ["first", "other"]
        assert fits(page)
        page.context.close()
