"""`sqa play` in real browsers: Chromium driven by Playwright, by keys alone; skipped where either is missing.

SQA_CHROMIUM names a browser that is not on the path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import play_games
import pytest
from stand_ins.http_server import serving_app

from sqa.core.paths import CONFIGS
from sqa.data.datasets import load_questions
from sqa.files.store import Store
from sqa.run import folder as folders
from sqa.run import paired, saving
from sqa.run.config import load_run
from sqa.run.pipeline import run
from sqa_services.play import server as servers
from sqa_services.play.export import export
from sqa_services.play.runs import PlayedRun
from sqa_services.play.table import Timing

pytestmark = pytest.mark.slow
QUESTIONS = 5
CURVE = (0.9930799808912602, 0.07753813168299144, -1.278222873334493, 0.5879804678680423)


@dataclass
class Traffic:
    """An ASGI application before another: every request, and every byte that goes to a page, in their order."""

    app: Any
    said: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http":
            self.said.append(("asked", f"{scope['method']} {path}"))

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.body":
                text = message.get("body", b"").decode()
                self.said.append((path, text))
            await send(message)

        await self.app(scope, receive, sending)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> PlayedRun:
    """Two sentences of each bundled Spanish question, as all are read aloud, by wait-6, BM25 and its buzzer."""
    runs = tmp_path_factory.mktemp("runs")
    with (runs / "short.jsonl").open("w", encoding="utf-8") as file:
        for q in load_questions("mini-es", 14):
            source = [" ".join(words) for words in q.sentences[:2]]
            row = {"id": q.id, "language": "es", "source": source, "reference": list(q.reference[:2]), "page": q.page}
            file.write(json.dumps(row) + "\n")
    config = load_run(CONFIGS / "mini_es_wait6_bm25.yaml")
    config = replace(config, dataset=replace(config.dataset, name=str(runs / "short.jsonl")))
    result = run(config, Store(runs), progress=False)
    return PlayedRun("wait6", folders.read(saving.save(result, runs)))


@pytest.fixture
def traffic(shown: PlayedRun, tmp_path: Path) -> Iterator[tuple[str, Traffic]]:
    config = servers.PlayConfig((shown.folder,), tmp_path / "games", timing=Timing(end_seconds=0.5))
    watched = Traffic(servers.make_app(servers.Rooms(config), config))
    with serving_app(watched) as url:
        yield url, watched


@pytest.fixture
def open_page(browser: Any, traffic: tuple[str, Traffic]) -> Iterator[Any]:
    """Opens the page and agrees, by keys; afterwards: nothing failed in it."""
    contexts, problems = [], []

    def opened(width: int = 1400, colour: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=colour)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(traffic[0])
        page.wait_for_selector("#agree:focus")
        page.keyboard.press("Enter")
        page.wait_for_selector("#run:focus")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems


def begin(page: Any, mode: int, questions: int, pace: int = 1200) -> None:
    """A new game, by keys: mode 0 alone, 1 against a system, 2 two people."""
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


def plan(i: int, page: str, steps: int) -> tuple[int | None, str, str]:
    """(words to wait for, what to type, how) of question i: titles chosen, typed in full, wrong, none; one no buzz."""
    at = min(steps, 5 + 6 * i)
    kind = ("chosen", "typed", "wrong", "none", "chosen")[i]
    if kind == "none":
        return None, "", kind
    return at, {"chosen": page[:-1], "typed": page.upper(), "wrong": "Xyzzy"}[kind], kind


def answer_by_keys(page: Any, text: str, kind: str, answer: str) -> None:
    page.wait_for_selector("#answer:focus")
    page.keyboard.type(text)
    if kind == "chosen":
        page.wait_for_selector(f'#titles li:has-text("{answer}")')
        for _ in range(8):
            page.keyboard.press("ArrowDown")
            if page.input_value("#answer") == answer:
                break
    page.keyboard.press("Enter")


@pytest.mark.parametrize(("width", "colour"), [(400, "dark")])
def test_a_game_against_bm25_by_keys_alone(
    shown: PlayedRun, open_page: Any, traffic: tuple[str, Traffic], tmp_path: Path, width: int, colour: str
) -> None:
    page, book = open_page(width, colour), play_games.journal(tmp_path)
    begin(page, mode=1, questions=QUESTIONS)
    page.wait_for_selector("#next:focus")
    [game] = book.games()
    assert game.mode == "system" and game.pace == 1200 and len(game.questions) == QUESTIONS
    pages = {q.id: q.page for q in shown.finished.questions}
    for i, question in enumerate(game.questions):
        page.keyboard.press("Enter")
        page.wait_for_selector("#buzz:focus")
        at, text, kind = plan(i, pages[question], len(shown.trace(question).emissions))
        if at is not None:
            words_shown(page, at)
            page.keyboard.press(" ")
            if i == 1:
                page.wait_for_selector("#answer:focus")
                page.keyboard.type("al")
                page.wait_for_selector("#titles li")
                for _ in "al":
                    page.keyboard.press("Backspace")
            answer_by_keys(page, text, kind, pages[question])
        page.wait_for_selector("#result:not([hidden])", timeout=60_000)
        assert page.inner_text("#verdict").endswith(pages[question])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.wait_for_selector("#leave:focus")
    check_traffic(shown, game.questions, traffic[1].said)
    [exported] = export(book, tmp_path / "out")
    plays = {play.question: play for play in book.plays(game.id)}
    total = 0.0
    for i, question in enumerate(game.questions):
        step, trace = plays[question].step, shown.trace(question)
        at, _, kind = plan(i, pages[question], len(trace.emissions))
        assert (step is None) == (at is None)
        if step is not None and at is not None and kind in ("chosen", "typed"):
            assert step >= at - 1
            total += ew_by_hand(trace, step)
    assert (
        exported.ew == pytest.approx(total / QUESTIONS, abs=1e-12)
        and exported.ew > 0
        and exported.questions == QUESTIONS
    )
    saved = folders.read(exported.folder)
    assert float(saved.stats["ew"].sum(axis=0)[0]) == pytest.approx(total, abs=1e-9)
    rows, _ = paired.compare(saved, folders.read(exported.folder.parent / exported.run), 20, ["ew"])
    assert rows[0].n == QUESTIONS and rows[0].a == pytest.approx(exported.ew)
    shown_ew = float(page.inner_text("#score").split("EW ")[1].split(" ")[0])
    assert shown_ew == pytest.approx(exported.ew, abs=5e-4)
    print(
        f"EW of the scripted player {exported.ew:.6f}, by hand {total / QUESTIONS:.6f}, of the system {rows[0].b:.6f}"
    )


def ew_by_hand(trace: Any, step: int) -> float:
    """The published cubic at the share of source characters read: equation 1, then lengths of texts."""
    emission, sentences = trace.emissions[step], trace.question.sentences
    read = [word for sentence in sentences[: emission.sentence] for word in sentence]
    read += sentences[emission.sentence][: emission.g]
    t = len(" ".join(read)) / len(" ".join(word for sentence in sentences for word in sentence))
    return sum(c * t**power for power, c in enumerate(CURVE))


def check_traffic(shown: PlayedRun, questions: tuple[str, ...], said: list[tuple[str, str]]) -> None:
    """Between a question's start and its buzz (or its end) nothing but words that were due went to the page."""
    starts = [i for i, (_, text) in enumerate(said) if '"type": "question"' in text]
    assert len(starts) == len(questions)
    for start, question in zip(starts, questions, strict=True):
        trace = shown.trace(question)
        end = next(
            i for i in range(start, len(said)) if said[i][1].endswith("/buzz") or '"type": "result"' in said[i][1]
        )
        raw = [text for path, text in said[start:end] if path != "asked" and text and not text.startswith(":")]
        events = [json.loads(text.removeprefix("data: ")) for text in raw if text != "{}"]
        assert {event["type"] for event in events} <= {"question", "word"}
        words = [event["word"] for event in events if event["type"] == "word"]
        assert words == [emission.token for emission in trace.emissions[: len(words)]]
        together = "".join(raw)
        secrets = [trace.question.id, trace.question.reference_text, *map(" ".join, trace.question.sentences)]
        assert not [secret for secret in secrets if secret in together or json.dumps(secret)[1:-1] in together]
        if trace.question.page not in " ".join(words):
            assert trace.question.page not in together
    before = "".join(text for _, text in said[: starts[0]])
    assert not [q.id for q in shown.finished.questions if q.id in before or q.reference_text in before]


def test_two_browsers_see_the_same_words_in_step(open_page: Any, traffic: tuple[str, Traffic]) -> None:
    first, second = open_page(1400, "light"), open_page(400, "light")
    begin(first, mode=2, questions=1)
    first.wait_for_selector("#gather:not([hidden])")
    code = first.inner_text("#shown-code")
    second.focus("#code")
    second.keyboard.type(code)
    second.keyboard.press("Enter")
    for page in (first, second):
        page.wait_for_selector("#next:focus")
    for page in (first, second):
        page.keyboard.press("Enter")
    for page in (first, second):
        page.wait_for_selector("#result:not([hidden])", timeout=60_000)
    words = [json.loads(text.removeprefix("data: ")) for _, text in traffic[1].said if '"type": "word"' in text]
    assert len(words) > 60 and [word["step"] for word in words] == [step // 2 for step in range(len(words))]
    assert words[::2] == words[1::2]
