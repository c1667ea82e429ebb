"""Servers on a free port of loopback, and an agent that waits and copies the reference."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Any

from aiohttp import web

from sqa.protocols.iwslt.client import DEFAULT_EOS, GET, SEND, Agent
from sqa.protocols.iwslt.corpus import SpeechCorpus, TextCorpus
from sqa.protocols.iwslt.http import ServeConfig, make_app
from sqa.protocols.iwslt.questions import QuestionScorer


def serving(
    corpus: TextCorpus | SpeechCorpus, config: ServeConfig | None = None, scorer: QuestionScorer | None = None
) -> AbstractContextManager[str]:
    """The URL of an evaluation server that runs in a thread until the block ends."""
    return serving_app(make_app(corpus, config or ServeConfig(), scorer))


@contextmanager
def serving_app(app: web.Application) -> Iterator[str]:
    """The URL of an application that runs in a thread until the block ends."""
    ready, stop, found = Event(), asyncio.Event(), {}

    async def run() -> None:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        found["loop"], found["url"] = asyncio.get_running_loop(), site._server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        await runner.cleanup()
        await asyncio.sleep(0.05)  # for the transports to close their sockets

    thread = Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield f"http://127.0.0.1:{found['url']}"
    finally:
        found["loop"].call_soon_threadsafe(stop.set)
        thread.join(30)
        assert not thread.is_alive()


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
