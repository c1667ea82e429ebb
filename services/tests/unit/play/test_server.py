"""A game over HTTP: what reaches a page and when, who may ask, what a restart keeps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import play_games
import pytest
import requests
from play_games import Player
from stand_ins.http_server import serving_app

from sqa.core.errors import ConfigError
from sqa_services.net.address import Address
from sqa_services.play.export import export
from sqa_services.play.server import PlayConfig, make_app
from sqa_services.play.table import Timing

QUICK = Timing(0.3, 0.2)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> play_games.PlayedRun:
    return play_games.make(tmp_path_factory.mktemp("run"))


@contextmanager
def serving(config: PlayConfig) -> Iterator[str]:
    with serving_app(make_app(config)) as url:
        yield url


@pytest.fixture
def url(shown: play_games.PlayedRun, tmp_path: Path) -> Iterator[str]:
    with serving(PlayConfig((shown.folder,), tmp_path, timing=Timing(end_seconds=0.3))) as url:
        yield url


def test_a_game_against_a_system(shown: play_games.PlayedRun, url: str) -> None:
    """Buzzes right at once on the first question, wrong on the second, never on the third."""
    player, events, asked, at = Player(url), [], -1, []
    player.begin(mode="system")
    for event in player.events():
        events.append(event)
        if event["type"] in ("state", "scores"):
            assert player.act("answer", {"answer": "x"}).status_code == 409  # not asked for
            player.act("next")
        elif event["type"] == "question":
            asked += 1
        elif event["type"] == "word" and event["step"] == 3 and asked < 2:
            assert player.send("GET", f"games/{player.game}/pages?text=fra").status_code == 409
            at.append(player.act("buzz").json()["step"])
            assert at[-1] >= 3 and player.act("buzz").status_code == 409
        elif event["type"] == "buzzed":
            assert player.ask("GET", f"games/{player.game}/pages?text=FRA")["pages"] == ["France"]
            [question] = [q for q in shown.finished.questions if q.id == _id_of(shown, player.game, asked, url)]
            player.act("answer", {"answer": question.page if asked == 0 else "Portugal"})
            assert player.ask("GET", f"games/{player.game}/pages?text=FR")["pages"]  # asked for just before it was sent
        elif event["type"] == "over":
            break
    results = [event for event in events if event["type"] == "result"]
    assert [(r["mine"]["step"], r["mine"]["right"]) for r in results] == [(at[0], True), (at[1], False), (None, False)]
    assert results[0]["mine"]["words"] == at[0] + 1 and results[0]["page"] in ("Spain", "France", "Atlantis")
    last = [event for event in events if event["type"] == "scores"][-1]
    assert last["me"]["right"] == 1 and last["me"]["points"] == sum(
        e["points"] for e in events if e["type"] == "scores"
    )
    assert last["me"]["questions"] == 3
    assert last["rival"]["questions"] == 3 and last["rival"]["points"] in (0, 10, 20)


def _id_of(shown: play_games.PlayedRun, game: str, index: int, url: str) -> str:
    """The question that is shown, from the journal: the page is not told."""
    return BOOKS[url].game(game).questions[index]


BOOKS: dict[str, play_games.Journal] = {}


@pytest.fixture(autouse=True)
def book(url: str, tmp_path: Path) -> Iterator[play_games.Journal]:
    BOOKS[url] = play_games.Journal(tmp_path / "games.sqlite")
    yield BOOKS[url]
    BOOKS.pop(url).close()


def test_nothing_but_words_that_are_due_comes_before_the_buzz(
    shown: play_games.PlayedRun, url: str, book: play_games.Journal
) -> None:
    player = Player(url)
    game = book.game(player.begin(questions=1))
    assert game is not None
    [question] = [q for q in shown.finished.questions if q.id == game.questions[0]]
    *before, event = player.play(until="result", buzz=2)
    assert event["page"] == question.page and event["source"] == list(question.words)
    sent = json.dumps([before, player.setup], ensure_ascii=False)
    shown_words = [e["word"] for e in before if e["type"] == "word"]
    assert shown_words == list(question.words[: event["mine"]["words"]]) and 3 <= len(shown_words) < len(question.words)
    assert not [
        word
        for word in (*question.words[len(shown_words) :], question.page, question.reference_text)
        if f'"{word}' in sent
    ]
    assert question.id not in sent


def test_two_people_have_the_same_words_and_do_not_stop_each_other(url: str) -> None:
    """One buzzes early and is done; the other reads to the end and sees nothing of it."""
    first, second = Player(url), Player(url)
    first.begin(mode="two", questions=1)
    stranger = Player(url)
    assert second.send("GET", f"games/{first.game}/events").status_code == 404
    second.game = second.ask("POST", f"games/{first.game}/join")["game"]
    assert stranger.send("POST", f"games/{first.game}/join").status_code == 409
    events_of: dict[str, list[dict]] = {}

    def play(player: Player, step: int | None) -> None:
        events_of[player.id] = player.play(until="over", buzz=step, answer="Portugal")

    threads = [threading.Thread(target=play, args=pair) for pair in ((first, 1), (second, None))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    words = {id: [e["word"] for e in events if e["type"] == "word"] for id, events in events_of.items()}
    n = len(words[first.id])
    assert 2 <= n < len(words[second.id]) == 10 and words[second.id][:n] == words[first.id]
    scores = {id: [e for e in events if e["type"] == "scores"][-1] for id, events in events_of.items()}
    assert scores[first.id]["points"] == -5 and scores[second.id]["points"] == 0
    assert scores[second.id]["beside"]["step"] == n - 1 and scores[first.id]["beside"]["step"] is None
    assert scores[second.id]["rival"]["points"] == -5


def test_nobody_sees_the_answer_while_the_other_reads(
    shown: play_games.PlayedRun, url: str, book: play_games.Journal
) -> None:
    """One person in both seats answered in the first and read there what to answer in the second."""
    first, second = Player(url), Player(url)
    game = book.game(first.begin(mode="two", questions=1))
    assert game is not None
    [question] = [q for q in shown.finished.questions if q.id == game.questions[0]]
    second.game = second.ask("POST", f"games/{first.game}/join")["game"]
    events, order, reads = [], [], threading.Event()

    def early() -> None:
        for event in first.events():
            events.append(event)
            if event["type"] == "state":
                first.act("next")
            elif event["type"] == "word" and event["step"] == 0:
                first.act("buzz")
            elif event["type"] == "buzzed":
                first.act("answer", {"answer": "x"})
            elif event["type"] == "waiting":
                order.append("first waits")
                reads.set()
            elif event["type"] == "result":
                order.append("first sees it")
            elif event["type"] == "over":
                return

    thread = threading.Thread(target=early)
    thread.start()
    for event in second.events():
        if event["type"] == "state":
            second.act("next")
        elif event["type"] == "word" and reads.is_set() and "second buzzes" not in order:
            so_far = json.dumps(events)
            assert f'"{question.page}' not in so_far and question.reference_text not in so_far
            order.append("second buzzes")
            second.act("buzz")
        elif event["type"] == "buzzed":
            second.act("answer", {"answer": question.page})
        elif event["type"] == "result":
            assert event["mine"]["right"] and event["page"] == question.page
        elif event["type"] == "over":
            break
    thread.join(30)
    assert order == ["first waits", "second buzzes", "first sees it"]
    [result] = [event for event in events if event["type"] == "result"]
    assert result["page"] == question.page and not result["mine"]["right"]


def test_without_an_answer_in_time_the_buzz_was_wrong(
    shown: play_games.PlayedRun, tmp_path: Path, book: play_games.Journal
) -> None:
    config = PlayConfig((shown.folder,), tmp_path / "quick", timing=QUICK)
    with serving(config) as url:
        player = Player(url)
        player.begin(questions=1)
        for event in player.events():
            if event["type"] == "state":
                player.act("next")
            if event["type"] == "word" and event["step"] == 0:
                player.act("buzz")
            if event["type"] == "result":
                break
    assert event["mine"]["step"] >= 0 and (event["mine"]["answer"], event["mine"]["right"]) == ("", False)


def test_a_page_that_comes_back_finds_its_place(url: str) -> None:
    player = Player(url)
    player.begin(questions=2)
    for event in player.events():
        if event["type"] == "state":
            player.act("next")
        if event["type"] == "word" and event["step"] == 2:
            seen = event["step"]
            break
    state = next(player.events())
    assert state["phase"] == "reading" and len(state["words"]) > seen and state["place"] == 0
    player.act("buzz")
    state = next(player.events())
    assert state["phase"] == "answering" and 0 < state["left"] <= 20 and state["result"] is None


def test_who_leaves_is_forgotten(url: str, book: play_games.Journal) -> None:
    player = Player(url)
    player.begin()
    events = player.events()
    assert next(events)["type"] == "state"
    player.ask("DELETE", "players")
    assert list(events) == [] and book.players() == [] and book.games() == []
    assert player.send("GET", f"games/{player.game}/events").status_code == 403


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"run": "other"}, "run: there is no such run"),
        ({"mode": "duel"}, "mode: Input should be"),
        ({"pace": 1e9}, "pace: Input should be less than or equal to 1200"),
        ({"pace": True}, "pace: Input should be a valid number"),
        ({"questions": 0}, "questions: Input should be greater than or equal to 1"),
    ],
)
def test_wrong_requests_are_refused(url: str, wanted: dict[str, object], problem: str) -> None:
    player = Player(url)
    body = {"run": "echo", "mode": "alone", "system": "echo", "pace": 600, "questions": 3} | wanted
    reply = player.send("POST", "games", body)
    assert reply.status_code == 400 and problem in reply.json()["detail"]
    assert player.send("POST", "games", ["no object"]).status_code == 400
    assert player.send("POST", "players", {"consent": "another text"}).status_code == 409
    assert player.send("GET", "games/zzzzzz/events").status_code == 404


def test_other_sites_and_names_are_refused(url: str) -> None:
    assert requests.get(f"{url}/api/setup", headers={"Host": "evil.example"}, timeout=30).status_code == 400
    away = {"Origin": "http://evil.example"}
    assert requests.post(f"{url}/api/players", json={}, headers=away, timeout=30).status_code == 403
    policy = requests.get(url, timeout=30).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")


def test_beyond_loopback_every_request_needs_the_token(shown: play_games.PlayedRun, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give a --token"):
        PlayConfig((shown.folder,), address=Address(host="0.0.0.0"))
    with serving(PlayConfig((shown.folder,), tmp_path / "t", address=Address(host="0.0.0.0", token="secret"))) as url:
        assert requests.get(url, timeout=30).ok and requests.get(f"{url}/page.js", timeout=30).ok
        assert requests.get(f"{url}/api/setup", timeout=30).status_code == 401
        assert Player(url, Authorization="Bearer secret").begin()


def test_a_config_makes_its_run_when_the_game_begins(tmp_path: Path) -> None:
    live = play_games.config(tmp_path, "mine")
    with serving(PlayConfig((live,), tmp_path / "games", timing=QUICK)) as url:
        player = Player(url)
        assert player.setup["runs"] == [{"name": "mine (live)", "questions": 6, "systems": ["mine (live)"]}]
        player.begin(mode="system", questions=2)
        assert (tmp_path / "games" / "live" / player.game / "mine" / "report.tsv").is_file()
        for event in player.events():
            if event["type"] in ("state", "scores"):
                player.act("next")
            if event["type"] == "result" and event["system"]:
                break
    assert event["system"]["name"] == "mine"
    [exported] = export(play_games.journal(tmp_path), tmp_path / "out")
    assert (exported.run, exported.questions) == ("mine", 1) and (
        exported.folder.parent / "mine" / "report.tsv"
    ).is_file()
