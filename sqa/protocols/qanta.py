"""A guesser and a buzzer of this project as a QANTA system: `sqa serve qanta`.

    GET  /api/1.0/quizbowl/status      {"batch": true, "batch_size": 200, "ready": true, ...}
    POST /api/1.0/quizbowl/act         {"question_idx", "sent_index", "char_index", "text"} -> {"guess", "buzz"}
    POST /api/1.0/quizbowl/batch_act   {"questions": [as for act, ...]} -> [{"guess", "buzz"}, ...]

A request brings all of a question that is known, and nothing is remembered between requests: what the guesser named
after each of its words is worked out again, so the buzzer, which looks back, decides as it does in a run that guesses
after every word.  A word that is cut in the middle is read as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from sqa.core.errors import ConfigError
from sqa.core.interfaces import Buzzer, Guesser, IncrementalGuesser
from sqa.core.types import Guess
from sqa.run.contestant import contestant_from
from sqa.run.pipeline import N_GUESSES

MISSING = "sqa serve qanta needs the package aiohttp; install the extra: pip install 'sqa[serve]'"


@dataclass(frozen=True, slots=True)
class Act:
    """What is answered to a text."""

    guess: str  # a page's title, "" = none
    buzz: bool


class Player:
    """Answers texts.  Called from one thread."""

    def __init__(self, guesser: Guesser, buzzer: Buzzer) -> None:
        """A buzzer that has to be told the answer: ConfigError."""
        if getattr(buzzer, "oracle", False):
            raise ConfigError("--buzzer: it has to be told the answer, and here nobody knows it")
        self._guesser, self._buzzer = guesser, buzzer

    def act(self, texts: Sequence[str]) -> list[Act]:
        """An act for each text, which depends on that text alone; texts that begin alike share their work."""
        words = [tuple(text.split()) for text in texts]
        found: dict[tuple[str, ...], Act] = {(): Act("", False)}
        longest: tuple[str, ...] = ()
        acts: list[Act] = []
        for text in sorted(set(words) - {()}, reverse=True):  # a text that begins another one comes right after it
            if longest[: len(text)] != text:
                longest, acts = text, self._acts(text)
            found[text] = acts[len(text) - 1]
        return [found[text] for text in words]

    def _acts(self, words: Sequence[str]) -> list[Act]:
        """The act after each word."""
        history: Sequence[Sequence[Guess]]
        if isinstance(self._guesser, IncrementalGuesser):
            history = self._guesser.guess_prefixes(words, N_GUESSES)
        else:
            texts = list(accumulate(words, lambda text, word: f"{text} {word}"))
            history = self._guesser.guess(texts, N_GUESSES)
        buzzes = self._buzzer.decide(history)
        pairs = zip(history, buzzes, strict=True)
        return [Act(guesses[0].page if guesses else "", bool(buzz.buzz)) for guesses, buzz in pairs]


def serve(guesser: str, buzzer: str, host: str, port: int, token: str | None, underscores: bool) -> None:
    """Serve until interrupted; `guesser` and `buzzer` are YAML, or a run's config file.  ConfigError."""
    try:
        from sqa.net.server import run_app
    except ModuleNotFoundError as error:
        raise ConfigError(MISSING) from error
    from sqa.protocols.qanta_http import QantaConfig, make_app

    config = QantaConfig(host, port, token, underscores)
    guessing, buzzing = contestant_from(guesser, buzzer)
    if buzzing is None:
        raise ConfigError("--buzzer: a QANTA system has to say when it buzzes; name one")
    app = make_app(Player(guessing, buzzing), config)
    print(f"sqa: answering at http://{host}:{port}/api/1.0/quizbowl/act", file=sys.stderr)
    run_app(app, host, port)
