"""An evaluation server on a free loopback port, and a wait-k agent that writes the reference."""

import wave
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import doubles
import numpy as np
import requests
from stand_ins.http_server import serving_app

from sqa_services.protocols.iwslt.client import (
    DEFAULT_EOS,
    GET,
    SEND,
    Agent,
    EvaluationService,
    TranslatorAgent,
    evaluate,
)
from sqa_services.protocols.iwslt.corpus import Corpus
from sqa_services.protocols.iwslt.http import ServeConfig, make_app
from sqa_services.protocols.iwslt.questions import QuestionScorer


def serving(
    corpus: Corpus, config: ServeConfig | None = None, scorer: QuestionScorer | None = None
) -> AbstractContextManager[str]:
    """Yield the URL of an evaluation server that runs in a thread until the block ends."""
    return serving_app(make_app(corpus, config or ServeConfig(), scorer))


def get(url: str, token: str = "") -> requests.Response:
    """Send a GET request and return the response."""
    return requests.get(url, headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=30)


def put(url: str, text: str | bytes) -> int:
    """Send a PUT request with a text and return the status."""
    return requests.put(url, data=text.encode() if isinstance(text, str) else text, timeout=60).status_code


ECHO = doubles.EchoTranslator(doubles.EchoConfig(k=2))


def translate(service: EvaluationService, end: int | None = None) -> int:
    """Copy the sentences up to and including `end` with a lag of two words; return their number."""
    return evaluate(lambda: TranslatorAgent(ECHO), service, end=end)


def recording(path: Path, samples: int, rate: int = 16_000, channels: int = 1) -> Path:
    """Write a WAV file with the 16-bit samples 0, 1, 2, ... and return its path."""
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, samples, "NONE", ""))
        file.writeframes(np.arange(samples * channels, dtype="<i2").tobytes())
    return path


class WaitAgent(Agent):
    """A wait-k agent that reads k words, then alternates between writing a reference word and reading a word."""

    def __init__(self, references: tuple[str, ...], k: int = 3) -> None:
        self.references, self.k = references, k

    def init_states(self) -> dict[str, Any]:
        return {"read": 0, "ended": False, "written": 0, "words": None}

    def update_states(self, states: dict[str, Any], new_state: dict[str, Any]) -> dict[str, Any]:
        states["words"] = [*self.references[new_state["sent_id"]].split(), DEFAULT_EOS]
        states["read"] += 1
        states["ended"] = new_state["segment"] == DEFAULT_EOS
        return states

    def policy(self, states: dict[str, Any]) -> dict[str, Any]:
        if not states["ended"] and states["read"] < self.k + states["written"]:
            return {"key": GET, "value": None}
        states["written"] += 1
        return {"key": SEND, "value": states["words"][states["written"] - 1]}
