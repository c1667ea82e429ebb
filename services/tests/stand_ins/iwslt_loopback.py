"""A server on a free port of loopback, and an agent that waits and copies the reference."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from stand_ins.http_server import serving_app

from sqa_services.protocols.iwslt.client import DEFAULT_EOS, GET, SEND, Agent
from sqa_services.protocols.iwslt.corpus import SpeechCorpus, TextCorpus
from sqa_services.protocols.iwslt.http import ServeConfig, make_app
from sqa_services.protocols.iwslt.questions import QuestionScorer


def serving(
    corpus: TextCorpus | SpeechCorpus, config: ServeConfig | None = None, scorer: QuestionScorer | None = None
) -> AbstractContextManager[str]:
    """The URL of an evaluation server that runs in a thread until the block ends."""
    return serving_app(make_app(corpus, config or ServeConfig(), scorer))


class WaitAgent(Agent):
    """Reads k words, then writes a word of the reference and reads one, in turn; after the end it only writes."""

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
