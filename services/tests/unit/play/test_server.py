"""A game over HTTP: order of the events, permissions and restarts."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from random import Random

import play_games
import pytest
import requests
from play_games import Event, Player
from stand_ins.http_server import serving_app
from stand_ins.processes import wait_until

from sqa.core.errors import ConfigError
from sqa.core.types import Question
from sqa_services.net.address import Address
from sqa_services.play import server
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


@pytest.fixture
def book(url: str, tmp_path: Path) -> Iterator[play_games.Journal]:
    opened = play_games.Journal(tmp_path / "games.sqlite")
    yield opened
    opened.close()


def questions_of(shown: play_games.PlayedRun, book: play_games.Journal, game: str) -> list[Question]:
    """Return the questions of a game from the journal, because the server does not send them to the page."""
    by_id = {question.id: question for question in shown.finished.questions}
    begun = book.game(game)
    assert begun is not None
    return [by_id[id] for id in begun.questions]


def questions_ids(book: play_games.Journal, game: str) -> tuple[str, ...]:
    begun = book.game(game)
    assert begun is not None
    return begun.questions


def test_game_against_a_system_is_scored(shown: play_games.PlayedRun, url: str, book: play_games.Journal) -> None:
    """The player buzzes correctly at once on the first question, wrongly on the second, and never on the third."""
    player = Player(url)
    questions = questions_of(shown, book, player.begin(mode="system"))
    asked, at = [], []

    def not_asked_for(_: Event) -> None:
        assert player.act("answer", {"answer": "x"}).status_code == 409

    def word(event: Event) -> None:
        if event["step"] == 3 and len(asked) < 3:
            assert player.send("GET", f"games/{player.game}/pages?text=fra").status_code == 409
            at.append(player.act("buzz").json()["step"])
            assert at[-1] >= 3 and player.act("buzz").status_code == 409

    def buzzed(_: Event) -> None:
        assert player.ask("GET", f"games/{player.game}/pages?text=FRA")["pages"] == ["France"]
        player.act("answer", {"answer": questions[0].page if len(asked) == 1 else "Portugal"})
        assert player.ask("GET", f"games/{player.game}/pages?text=FR")[
            "pages"
        ]  # a late request for titles is still answered

    on = {"state": not_asked_for, "scores": not_asked_for, "question": asked.append, "word": word, "buzzed": buzzed}
    events = player.play("over", answer=None, on=on)
    assert {event["system"] for event in events if event["type"] == "state"} == {player.setup["runs"][0]["name"]}
    results = [event for event in events if event["type"] == "result"]
    assert [(r["mine"]["step"], r["mine"]["right"]) for r in results] == [(at[0], True), (at[1], False), (None, False)]
    assert results[0]["mine"]["words"] == at[0] + 1 and results[0]["page"] == questions[0].page
    scores = [event for event in events if event["type"] == "scores"]
    me, rival = scores[-1]["me"], scores[-1]["rival"]
    assert (me["right"], me["questions"], me["points"]) == (1, 3, sum(event["points"] for event in scores))
    assert rival["questions"] == 3 and rival["points"] in (0, 10, 20)


def test_only_due_words_are_sent_before_the_buzz(
    shown: play_games.PlayedRun, url: str, book: play_games.Journal
) -> None:
    player = Player(url)
    [question] = questions_of(shown, book, player.begin(questions=1))
    *before, event = player.play(until="result", buzz=2)
    assert event["page"] == question.page and event["source"] == list(question.words)
    words = [e["word"] for e in before if e["type"] == "word"]
    assert words == list(question.words[: event["mine"]["words"]]) and 3 <= len(words) < len(question.words)
    sent = json.dumps([before, player.setup], ensure_ascii=False)
    secret = (*question.words[len(words) :], question.page, question.reference_text)
    assert question.id not in sent and not [word for word in secret if f'"{word}' in sent]


def two_players(url: str) -> tuple[Player, Player]:
    """Return two players in a game of one question."""
    first, second = Player(url), Player(url)
    first.begin(mode="two", questions=1)
    assert second.send("GET", f"games/{first.game}/events").status_code == 404
    second.game = second.ask("POST", f"games/{first.game}/join")["game"]
    assert Player(url).send("POST", f"games/{first.game}/join").status_code == 409
    return first, second


def test_buzz_does_not_stop_the_other_player(url: str) -> None:
    """One player buzzes early and finishes. The other player reads to the end without noticing the buzz."""
    first, second = two_players(url)
    with ThreadPoolExecutor(2) as pool:
        early, late = (pool.submit(p.play, "over", at, "Portugal") for p, at in ((first, 1), (second, None)))
        events = [early.result(30), late.result(30)]
    mine, whole = ([e["word"] for e in each if e["type"] == "word"] for each in events)
    n = len(mine)
    assert 2 <= n < len(whole) == 10 and whole[:n] == mine
    scores = [[e for e in each if e["type"] == "scores"][-1] for each in events]
    for points in ([score["points"] for score in scores], [score["me"]["points"] for score in scores]):
        assert points == [-5, 0]
    assert scores[1]["rival"]["points"] == -5
    assert [score["beside"]["step"] for score in scores] == [None, n - 1]


def test_answer_is_hidden_while_the_other_player_reads(
    shown: play_games.PlayedRun, url: str, book: play_games.Journal
) -> None:
    """Otherwise one person in both seats could answer in one seat and use the revealed answer in the other seat."""
    first, second = two_players(url)
    [question] = questions_of(shown, book, first.game)
    seen: list[Event] = []
    order: list[str] = []

    def word(_: Event) -> None:
        if order == ["first waits"]:
            so_far = json.dumps(seen)
            assert f'"{question.page}' not in so_far and question.reference_text not in so_far
            order.append("second buzzes")
            second.act("buzz")

    of_first = {"waiting": lambda _: order.append("first waits"), "result": lambda _: order.append("first sees it")}
    kinds = ("state", "word", "question", "buzzed", "ready")
    of_first |= dict.fromkeys(kinds, seen.append)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(first.play, "over", 0, "x", of_first)
        late = second.play("over", answer=question.page, on={"word": word})
        results = [next(e for e in events if e["type"] == "result") for events in (early.result(30), late)]
    assert order == ["first waits", "second buzzes", "first sees it"]
    assert [(result["page"], result["mine"]["right"]) for result in results] == [
        (question.page, False),
        (question.page, True),
    ]


def test_timeout_counts_as_a_wrong_answer(shown: play_games.PlayedRun, tmp_path: Path) -> None:
    with serving(PlayConfig((shown.folder,), tmp_path / "quick", timing=QUICK)) as url:
        player = Player(url)
        player.begin(questions=1)
        mine = player.play("result", buzz=0, answer=None)[-1]["mine"]
    assert mine["step"] >= 0 and (mine["answer"], mine["right"]) == ("", False)


def test_reloaded_page_resumes(url: str) -> None:
    player = Player(url)
    player.begin(questions=2)
    player.play(lambda event: event["type"] == "word" and event["step"] == 2)
    state = next(player.events())
    assert state["phase"] == "reading" and len(state["words"]) > 2 and state["place"] == 0
    player.act("buzz")
    state = next(player.events())
    assert state["phase"] == "answering" and 0 < state["left"] <= 20 and state["result"] is None


def test_buzz_before_the_first_word_is_refused(url: str) -> None:
    player = Player(url)
    player.begin(pace=30)
    player.play("question")
    assert player.act("buzz").status_code == 409


@pytest.mark.parametrize("until", ["question", "word", "buzzed"])
def test_closing_the_page_counts_as_no_answer(
    url: str, book: play_games.Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: str
) -> None:
    """Otherwise players could remove hard questions from their mean EW by closing the page."""
    player = Player(url)
    game = player.begin(questions=1)
    player.play(until, buzz=1, answer=None)
    wait_until(lambda: book.plays(game)[0].state != "shown")
    [exported] = export(book, tmp_path / "out")
    assert (exported.questions, exported.lost, exported.right, exported.ew) == (1, 0, 0, 0.0)
    assert exported.buzzes == (until == "buzzed")


@pytest.mark.parametrize("first_leaves", [True, False])
def test_leaving_keeps_the_other_players_question(url: str, book: play_games.Journal, first_leaves: bool) -> None:
    """Otherwise a player with a second account could remove a question from the EW of the first account."""
    players = two_players(url)
    leaver, stays = players if first_leaves else players[::-1]
    game = stays.game

    def word(event: Event) -> None:
        if event["step"] == 1 and leaver.id in {id for id, _ in book.players()}:
            leaver.ask("DELETE", "players")

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: list(leaver.play("never", None)))
        stays.play("result", 4, "x", {"word": word})
        assert reading.result(30)[-1]["type"] != "result"
    [play] = book.plays(game)
    assert (play.player, play.state, play.answer) == (stays.id, "done", "x") and play.step >= 4
    reply = stays.send("GET", f"games/{game}/pages?text=fr")
    assert reply.status_code == (410 if first_leaves else 409)


@pytest.mark.parametrize("seed", range(3))
def test_seen_question_is_not_asked_in_another_game(url: str, book: play_games.Journal, seed: int) -> None:
    """The games, created in advance, have some questions in common."""
    player, random = Player(url), Random(seed)
    games = [player.begin(questions=n) for n in (6, 4, 6)]
    assert len({id for game in games for id in questions_ids(book, game)}) < 16
    shown: list[str] = []
    while games:
        player.game = random.choice(games)
        events = player.play(lambda event: event["type"] in ("result", "over"), random.randrange(5), "x")
        shown += [event["page"] + " ".join(event["source"]) for event in events if event["type"] == "result"]
        if [event for event in player.play(lambda _: True) if event.get("phase") == "over"]:
            games.remove(player.game)
    ids = [play.question for play in book.plays()]
    assert len(ids) == len(set(ids)) == len(shown) == 6
    second = Player(url)
    second.begin(mode="two", questions=6)
    player.game = player.ask("POST", f"games/{second.game}/join")["game"]
    with ThreadPoolExecutor(2) as pool:  # the other player has seen all questions
        assert all(events[-1]["type"] == "over" for events in pool.map(lambda p: p.play("over"), (second, player)))
    assert book.plays(second.game) == []


def test_concurrent_games_ask_no_question_twice(url: str, book: play_games.Journal) -> None:
    player = Player(url)
    games = [player.begin(questions=6, pace=1200) for _ in range(4)]

    def played(game: str) -> list[Event]:
        page = copy(player)
        page.game = game
        return page.play("over", 0, "x")

    with ThreadPoolExecutor(4) as pool:
        results = [event for events in pool.map(played, games) for event in events if event["type"] == "result"]
    assert len(results) == len(book.plays()) == len({play.question for play in book.plays()}) == 6


def test_games_beyond_the_limit_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TABLES", 1)
    first, second = Player(url), Player(url)
    for player in (first, second):
        player.begin()
    under_way = first.events()
    assert next(under_way)["type"] == "state"
    assert second.act("next").status_code == 503
    under_way.close()


def test_leaving_deletes_the_player(url: str, book: play_games.Journal) -> None:
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
        ({"run": "other"}, "run: this run does not exist"),
        ({"mode": "duel"}, "Invalid enum value 'duel' - at `$.mode`"),
        ({"pace": 1e9}, "Expected `float` <= 1200.0 - at `$.pace`"),
        ({"questions": 0}, "Expected `int` >= 1 - at `$.questions`"),
    ],
)
def test_invalid_requests_are_refused(url: str, wanted: dict[str, object], problem: str) -> None:
    player = Player(url)
    body = {"run": "echo", "mode": "alone", "system": "echo", "pace": 600, "questions": 3} | wanted
    reply = player.send("POST", "games", body)
    assert reply.status_code == 400 and problem in reply.json()["detail"]
    assert player.send("POST", "games", ["no object"]).status_code == 400
    assert player.send("POST", "players", {"consent": "another text"}).status_code == 409
    assert player.send("GET", "games/zzzzzz/events").status_code == 404


def test_other_sites_and_host_names_are_refused(url: str) -> None:
    assert requests.get(f"{url}/api/setup", headers={"Host": "evil.example"}, timeout=30).status_code == 400
    away = {"Origin": "http://evil.example"}
    assert requests.post(f"{url}/api/players", json={}, headers=away, timeout=30).status_code == 403
    policy = requests.get(url, timeout=30).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")


def test_non_loopback_requests_need_the_token(shown: play_games.PlayedRun, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give a --token"):
        PlayConfig((shown.folder,), address=Address(host="0.0.0.0"))
    with serving(
        PlayConfig((shown.folder,), tmp_path / "t", address=Address(host="0.0.0.0", token="secret-secret-secret"))
    ) as url:
        assert requests.get(url, timeout=30).ok and requests.get(f"{url}/page.js", timeout=30).ok
        assert requests.get(f"{url}/api/setup", timeout=30).status_code == 401
        assert Player(url, Authorization="Bearer secret-secret-secret").begin()


def test_config_run_starts_when_the_game_begins(tmp_path: Path) -> None:
    live = play_games.config(tmp_path, "mine")
    with serving(PlayConfig((live,), tmp_path / "games", timing=QUICK)) as url:
        player = Player(url)
        assert player.setup["runs"] == [{"name": "mine (live)", "questions": 6, "systems": ["mine (live)"]}]
        player.begin(mode="system", questions=2)
        assert (tmp_path / "games" / "live" / player.game / "mine" / "report.tsv").is_file()
        assert player.play("result")[-1]["system"]["name"] == "mine"
    [exported] = export(play_games.journal(tmp_path), tmp_path / "out")
    assert (exported.run, exported.questions) == ("mine", 1) and (
        exported.folder.parent / "mine" / "report.tsv"
    ).is_file()
