"""A guesser and a buzzer of this project as a QANTA system: `sqa serve qanta`.

    GET  /api/1.0/quizbowl/status      {"batch": true, "batch_size": 200, "ready": true, ...}
    POST /api/1.0/quizbowl/act         {"question_idx", "sent_index", "char_index", "text"} -> {"guess", "buzz"}
    POST /api/1.0/quizbowl/batch_act   {"questions": [as for act, ...]} -> [{"guess", "buzz"}, ...]

A request brings all of a question that is known, and nothing is remembered between requests: what the guesser named
after each of its words is worked out again, so the buzzer, which looks back, decides as it does in a run that guesses
after every word.  A word that is cut in the middle is read as it is.

What is not such a question gets 400, a batch or text that is too long 413, and all replies are JSON.  Guessing runs in
a second thread, a request after the other.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from sqa.core.errors import ConfigError, Count, checked
from sqa.core.types import Buzzer, Guesser, guesses_per_word
from sqa.run.named import contestant_from
from sqa.run.pipeline import N_GUESSES
from sqa_services.net import connections
from sqa_services.net.address import Address
from sqa_services.net.guard import Refused
from sqa_services.net.server import OneThread, application, parsed

ROOT = "/api/1.0/quizbowl"
TYPE = "application/json; charset=utf-8"


def serve(guesser: str, buzzer: str, address: Address, underscores: bool) -> None:
    """Serve until interrupted; `guesser` and `buzzer` are YAML, or a run's config file.  ConfigError."""
    guessing, buzzing = contestant_from(guesser, buzzer)
    if buzzing is None:
        raise ConfigError("--buzzer: a QANTA system has to say when it buzzes; name one")
    app = make_app(Player(guessing, buzzing), QantaConfig(address, underscores))
    print(f"sqa: answering at {address.url}{ROOT}/act", file=sys.stderr)
    connections.run_app(app, address)


class Act(NamedTuple):
    """What is answered to a text."""

    guess: str  # a page's title, "" = none
    buzz: bool


class Player:
    """Answers texts.  Called from one thread."""

    def __init__(self, guesser: Guesser, buzzer: Buzzer) -> None:
        """A buzzer that needs the right answer: ConfigError."""
        if getattr(buzzer, "oracle", False):
            raise ConfigError("--buzzer: it needs the right answer, which a QANTA server does not know")
        self._guesser, self._buzzer = guesser, buzzer

    def act(self, texts: Sequence[str]) -> list[Act]:
        """An act for each text, which depends on that text alone; texts with the same beginning share the work."""
        words = [tuple(text.split()) for text in texts]
        by_text: dict[tuple[str, ...], Act] = {(): Act("", False)}
        longest: tuple[str, ...] = ()
        acts: list[Act] = []
        for text in sorted(set(words) - {()}, reverse=True):  # a text that begins another one comes right after it
            if longest[: len(text)] != text:
                longest, acts = text, self._acts(text)
            by_text[text] = acts[len(text) - 1]
        return [by_text[text] for text in words]

    def _acts(self, words: Sequence[str]) -> list[Act]:
        """The act after each word."""
        history = guesses_per_word(self._guesser, words, N_GUESSES)
        pairs = zip(history, self._buzzer.decide(history), strict=True)
        return [Act(guesses[0].page if guesses else "", bool(buzz.buzz)) for guesses, buzz in pairs]


@dataclass(frozen=True, slots=True)
@checked
class QantaConfig:
    """How the server answers."""

    address: Address = field(default_factory=Address)  # its token is needed for all but the status
    underscores: bool = False  # write titles with "_" for blanks, as QANTA's data does
    batch_size: Count = 200  # questions in a batch at most
    max_text: Count = 5_000  # characters of a question


class Question(BaseModel):
    """What is known of a question; the numbers that tell where it stands are not read."""

    text: str


class Batch(BaseModel):
    """Questions at once."""

    questions: list[Question]


def make_app(player: Player, config: QantaConfig) -> Starlette:
    """The application."""
    server = Server(player, config)
    routes = [
        ("GET", f"{ROOT}/status", server.status),
        ("POST", f"{ROOT}/act", server.act),
        ("POST", f"{ROOT}/batch_act", server.batch_act),
    ]
    needs_token = lambda _, path: not path.endswith("/status")  # noqa: E731
    return application(config.address, routes, _problem, server.close, needs_token=needs_token)


def _reply(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value).encode(), status, {"Content-Type": TYPE})


def _problem(status: int, problem: str) -> Response:
    return _reply({"error": problem or HTTPStatus(status).phrase}, status)


class Server:
    """The routes of one player."""

    def __init__(self, player: Player, config: QantaConfig) -> None:
        self._player, self._config = player, config
        self._thread = OneThread("player")
        self.close = self._thread.close

    async def status(self, request: Request) -> Response:
        return _reply(
            {"batch": True, "batch_size": self._config.batch_size, "ready": True, "include_wiki_paragraphs": False}
        )

    async def act(self, request: Request) -> Response:
        return _reply((await self._acts([await parsed(request, Question)]))[0])

    async def batch_act(self, request: Request) -> Response:
        questions = (await parsed(request, Batch)).questions
        if len(questions) > self._config.batch_size:
            raise Refused(413)
        return _reply(await self._acts(questions))

    async def _acts(self, questions: Sequence[Question]) -> list[dict[str, object]]:
        if any(len(question.text) > self._config.max_text for question in questions):
            raise Refused(413)
        acts = await self._thread.run(self._player.act, [question.text for question in questions])
        blank = "_" if self._config.underscores else " "
        return [{"guess": act.guess.replace(" ", blank), "buzz": act.buzz} for act in acts]
