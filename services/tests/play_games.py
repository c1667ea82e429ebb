"""Helpers for the tests of `sqa play`: finished runs, and a player that sends the same requests as the page."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import doubles
import requests
import yaml

from sqa.files.store import Store
from sqa.pipeline import folder as runs
from sqa.pipeline import saving
from sqa.pipeline.config import load_run
from sqa.pipeline.engine import run
from sqa_services.play.journal import FILE, Game, Journal, Play
from sqa_services.play.runs import PlayedRun

Event = dict[str, Any]


def config(folder: Path, name: str = "echo", n: int = 6, **parts: object) -> Path:
    """Write the config of a copying run on `n` questions, whose guesser names Spain and France after reading them."""
    questions = folder / "mine.jsonl"
    if not questions.is_file():
        doubles.write_questions(questions, n)
    values = {
        "dataset": {"name": str(questions)},
        "translator": {"name": "doubles:build_translator"},
        "guesser": {"name": "doubles:build_guesser"},
        "buzzer": {"name": "doubles:build_buzzer", "threshold": 0.5},
        "metrics": ["ew", "oracle-ew", "accuracy", "bleu", "al"],
        **parts,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in values.items() if value is not None}))
    return path


def make(folder: Path, name: str = "echo", n: int = 6, **parts: object) -> PlayedRun:
    """Run the config that `config` writes and return the finished run."""
    result = run(load_run(config(folder, name, n, **parts)), Store(folder / "runs"), progress=False)
    return PlayedRun(name, runs.read(saving.save(result, folder / "runs")))


def journal(folder: Path) -> Journal:
    return Journal(folder / "games" / FILE)


def record(
    book: Journal, shown: PlayedRun, plays: Sequence[tuple[str, int | None, str]], system: PlayedRun | None = None
) -> str:
    """Record a finished game of (question, buzz step, answer) for a new player and return the player."""
    player, _ = book.add_player("agreed")
    against = None if system is None else str(system.folder)
    ids = tuple(question for question, _, _ in plays)
    game = Game(f"game-{player}", str(shown.folder), shown.translation, against, "alone", 100.0, ids)
    book.add_game(game, player)
    for index, (question, step, answer) in enumerate(plays):
        book.begin(game.id, index, question, [player])
        book.finish(Play(game.id, index, 0, player, question, "done", step, 1.0, answer))
    return player


class Player:
    """A player who sends the page's requests."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url, self._headers = url, headers
        self.setup = self.ask("GET", "setup")
        account = self.ask("POST", "players", {"consent": self.setup["consent"]["hash"]})
        self.id, self._headers = account["player"], {**headers, "X-Player": account["key"]}
        self.game = ""

    def send(self, method: str, path: str, body: object = None) -> requests.Response:
        return requests.request(method, f"{self.url}/api/{path}", json=body, headers=self._headers, timeout=30)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        reply = self.send(method, path, body)
        assert reply.ok, reply.text
        return reply.json()

    def begin(self, **options: object) -> str:
        first = self.setup["runs"][0]["name"]
        body = {"run": first, "mode": "alone", "system": first, "pace": 600, "questions": 3, **options}
        self.game = self.ask("POST", "games", body)["game"]
        return self.game

    def act(self, action: str, body: object = None) -> requests.Response:
        return self.send("POST", f"games/{self.game}/{action}", body)

    def events(self) -> Iterator[Event]:
        """Yield the events of the stream, which ends with the server."""
        address = f"{self.url}/api/games/{self.game}/events"
        with requests.get(address, headers=self._headers, stream=True, timeout=30) as reply:
            assert reply.ok, reply.text
            for line in reply.iter_lines(chunk_size=1):
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def play(
        self,
        until: str | Callable[[Event], bool],
        buzz: int | None = None,
        answer: str | None = "",
        on: Mapping[str, Callable[[Event], object]] | None = None,
    ) -> list[Event]:
        """Play and return the events up to and including the first that matches `until`, a type or a predicate.

        The player starts each next question at once. With `buzz`, the player buzzes at the step of that index and
        gives `answer`, or lets the time run out if it is None. `on` maps event types to additional actions.
        """
        events = []
        for event in self.events():
            events.append(event)
            kind = event["type"]
            if on and kind in on:
                on[kind](event)
            if until(event) if callable(until) else kind == until:
                break
            if kind in ("state", "scores"):
                self.act("next")
            elif kind == "word" and event["step"] == buzz:
                self.act("buzz")
            elif kind == "buzzed" and answer is not None:
                self.act("answer", {"answer": answer})
        return events
