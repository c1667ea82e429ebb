"""`sqa play` in Chromium, driven by Playwright with the keyboard only; skipped if either is missing.

SQA_CHROMIUM names a browser that is not on the path.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import play_games
import pytest
from stand_ins.http_server import serving_app

from sqa.core.paths import CONFIGS
from sqa.data.datasets import load_questions
from sqa.data.own_questions import record_of
from sqa.files.store import Store
from sqa.pipeline import folder as folders
from sqa.pipeline import saving
from sqa.pipeline.config import load_run
from sqa.pipeline.engine import run
from sqa_services.play import server as servers
from sqa_services.play.export import export
from sqa_services.play.runs import PlayedRun
from sqa_services.play.table import Timing

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> PlayedRun:
    """Return a run of wait-6, BM25 and its buzzer on the first two sentences of 14 bundled Spanish questions."""
    runs = tmp_path_factory.mktemp("runs")
    with (runs / "short.jsonl").open("w", encoding="utf-8") as file:
        for q in load_questions("mini-es", 14):
            short = replace(q, sentences=q.sentences[:2], reference=q.reference[:2])
            file.write(json.dumps(record_of(short)) + "\n")
    config = load_run(CONFIGS / "mini_es_wait6_bm25.yaml")
    config = replace(config, dataset=replace(config.dataset, name=str(runs / "short.jsonl")))
    result = run(config, Store(runs), progress=False)
    return PlayedRun("wait6", folders.read(saving.save(result, runs)))


@pytest.fixture
def url(shown: PlayedRun, tmp_path: Path) -> Iterator[str]:
    config = servers.PlayConfig((shown.folder,), tmp_path / "games", timing=Timing(end_seconds=0.5))
    with serving_app(servers.make_app(config)) as url:
        yield url


@pytest.fixture
def open_page(browser: Any, url: str) -> Iterator[Any]:
    """Open the page and accept the terms by keyboard; afterwards check that the page had no error."""
    contexts, problems = [], []

    def opened(width: int = 1400, colour: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=colour)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(url)
        page.wait_for_selector("#agree:focus")
        page.keyboard.press("Enter")
        page.wait_for_selector("#run:focus")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems


def begin(page: Any, mode: int, questions: int, pace: int = 1200) -> None:
    """Start a new game by keyboard.  Mode 0 has one player, mode 1 a system as opponent, mode 2 two players."""
    press = page.keyboard.press
    press("Tab")
    for _ in range(mode):
        press("ArrowDown")
    press("Tab")
    if mode:
        press("Tab")
    page.keyboard.type(str(pace))
    press("Tab")
    page.keyboard.type(str(questions))
    press("Enter")


def words_shown(page: Any, n: int) -> None:
    page.wait_for_function("n => document.querySelector('#words').textContent.split(' ').length >= n", arg=n)


PLAN = ((5, "chosen"), (11, "typed"), (17, "wrong"), (None, "none"))  # word to buzz at, kind of answer


def answer_by_keys(page: Any, kind: str, answer: str) -> None:
    """Answer by keyboard: choose a listed title after a typing error, type the title, or type nonsense."""
    page.wait_for_selector("#answer:focus")
    if kind == "chosen":
        page.keyboard.type(f"{answer[:-1]}x")
        page.keyboard.press("Backspace")
        page.wait_for_selector(f'#titles li:has-text("{answer}")')
        for _ in range(8):
            page.keyboard.press("ArrowDown")
            if page.input_value("#answer") == answer:
                break
    else:
        page.keyboard.type(answer.upper() if kind == "typed" else "Xyzzy")
    page.keyboard.press("Enter")


def test_keyboard_game_against_bm25(shown: PlayedRun, open_page: Any, tmp_path: Path) -> None:
    page, book = open_page(400, "dark"), play_games.journal(tmp_path)
    begin(page, mode=1, questions=len(PLAN))
    page.wait_for_selector("#next:focus")
    [game] = book.games()
    assert game.mode == "system" and game.pace == 1200 and len(game.questions) == len(PLAN)
    pages = {q.id: q.page for q in shown.finished.questions}
    for question, (at, kind) in zip(game.questions, PLAN, strict=True):
        page.keyboard.press("Enter")
        page.wait_for_selector("#buzz:focus")
        if at is not None:
            words_shown(page, at)
            page.keyboard.press(" ")
            answer_by_keys(page, kind, pages[question])
        page.wait_for_selector("#result:not([hidden])", timeout=60_000)
        assert page.inner_text("#verdict").endswith(pages[question])
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.wait_for_selector("#leave:focus")
    [exported] = export(book, tmp_path / "out")
    for play, (at, kind) in zip(book.plays(game.id), PLAN, strict=True):
        assert (play.step is None) == (at is None) and (play.step or 99) >= (at or 1) - 1
        assert (play.answer == pages[play.question]) == (kind in ("chosen", "typed"))
    assert exported.ew > 0 and exported.questions == len(PLAN)
    shown_ew = float(page.inner_text("#score").split("EW ")[1].split(" ")[0])
    assert shown_ew == pytest.approx(exported.ew, abs=5e-4)
