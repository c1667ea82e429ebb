"""Client of an evaluation server, and the published guide's Agent, which a model implements.

    class MyAgent(Agent):                                 # sqa client iwslt --agent my_agent.py:MyAgent
        def init_states(self): return {"src": [], "sent": 0}
        def update_states(self, states, new_state): states["src"].append(new_state["segment"]); return states
        def policy(self, states): return {"key": GET, "value": None}  # or {"key": SEND, "value": "word"}

A sentence ends when the agent sends "</s>", or "<\\s>" as the guide prints it.  `EvaluationService` keeps the
method names that agents of 2020 call.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.types import Translator, Write
from sqa.files.records import parse_json
from sqa.net.client import SHOWN, Failed, Http, Reply, attempts, without_secret
from sqa_services.protocols.agents import agent_class
from sqa_services.protocols.iwslt.corpus import EOS, GUIDE_EOS, words

GET = 0
SEND = 1
DEFAULT_EOS = EOS
TIMEOUT = 60.0  # seconds to wait for a response
MAX_REPLY = 64 << 20  # maximum bytes of a response: a minute of speech at 96 kHz
GONE = (502, 503, 504)  # the server is restarting behind a proxy, or its memory is full
ADVICE = {
    401: "; a token is needed",
    403: "; this token may not do that: a participant has one session and cannot restart it",
    409: "; another client uses this session, or this client writes other words now: restart it or use another one",
}


class EvaluationService:
    """An evaluation server with the routes of the shared task.

    Many threads may use one object.  Raises DataError if a response violates the protocol.

    If `patience` is set, requests to a server of this project are repeated for up to that many seconds.  Every
    request carries the number of earlier requests, so a repeated request counts once.  A restarted client reads and
    writes its earlier words again.  The original servers do not support repeated requests.
    """

    def __init__(
        self, url: str = "http://localhost:12321", session: str = "", token: str = "", patience: float = 0.0
    ) -> None:
        self.base_url = f"{url.rstrip('/')}/sessions/{session}" if session else url.rstrip("/")
        self._patience = patience
        self._http = Http(TIMEOUT, MAX_REPLY, token)
        self._resumable: bool | None = None  # whether the server belongs to this project; None: unknown
        self._reads: Counter[int] = Counter()  # number of reads by sentence
        self._writes: Counter[int] = Counter()

    def new_session(self) -> None:
        """Start a new session: forget everything that was read and written."""
        self._call("POST", "/")
        self._reads.clear()
        self._writes.clear()

    def get_scores(self) -> dict[str, Any]:
        """Return the scores of the written words."""
        return self._json("/result")

    def corpus_info(self) -> dict[str, Any]:
        """Return {"num_sentences": N}."""
        return self._json("/")

    def finished(self) -> set[int]:
        """Return the indices of the sentences that the server reports as finished; empty without `patience`."""
        numbers = self._json("/progress").get("finished", []) if self._can_resume() else []
        return {number for number in numbers if isinstance(number, int)}

    def get_src(self, sent_id: int, extra_params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the next segment {"sent_id", "segment_id", "segment"}; `extra_params` may be {"segment_size": ms}."""
        counted = {"read": self._reads[sent_id]} if self._can_resume() else {}
        segment = self._json("/src", {"sent_id": sent_id, **(extra_params or {}), **counted})
        self._reads[sent_id] += 1
        return segment

    def send_hypo(self, sent_id: int, hypo: str) -> None:
        """Send a target word, or "</s>" to end the sentence."""
        counted = {"written": self._writes[sent_id]} if self._can_resume() else {}
        self._call("PUT", "/hypo", {"sent_id": sent_id, **counted}, hypo.encode())
        self._writes[sent_id] += len(words(hypo))

    def _can_resume(self) -> bool:
        """Return whether `patience` is set and the server recognises repeated requests."""
        if self._patience and self._resumable is None:
            self._resumable = self._ask("GET", "/progress").status == 200
        return bool(self._resumable)

    def _json(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        reply = self._call("GET", path, params)
        try:
            value = parse_json(reply.text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise DataError(f"{without_secret(reply.url)}: expected a JSON object, got {reply.text[:SHOWN]!r}")
        return value

    def _call(self, method: str, path: str, params: dict[str, Any] | None = None, body: bytes | None = None) -> Reply:
        reply = self._ask(method, path, params, body)
        if reply.status != 200:
            advice = ADVICE.get(reply.status, "") if self._resumable else ""
            raise DataError(f"{method} {without_secret(reply.url)}: the server answered {reply.status}{advice}")
        return reply

    def _ask(self, method: str, path: str, params: dict[str, Any] | None = None, body: bytes | None = None) -> Reply:
        """Return the response.  Retry within `patience` seconds if the server does not respond and a retry is safe."""
        url = self.base_url + path
        again = path not in ("/src", "/hypo") or bool(self._resumable)
        told = False
        for last in attempts(0.1, 2.0, seconds=self._patience if again else 0.0):
            try:
                reply = self._http.ask(method, url, body, params=params)
                if reply.status not in GONE or last:
                    return reply
            except Failed as error:
                if not error.again or last:
                    raise DataError(f"{method} {without_secret(url)}: {error}") from error
            if not told:
                print(f"sqa: {without_secret(url)} does not answer; retrying for a while", file=sys.stderr)
            told = True
        raise AssertionError("the last attempt returns or raises")


class Agent:
    """Interface of a model.  Override `init_states`, `update_states` and `policy`, and `reset` if needed.

    An optional `add_args(parser)` defines the model's options.
    """

    def __init__(self, args: Namespace | None = None) -> None:
        pass

    def init_states(self) -> Any:
        """Return the states before the first word of a sentence."""
        raise NotImplementedError

    def update_states(self, states: Any, new_state: dict[str, Any]) -> Any:
        """Return the states after a segment {"sent_id", "segment_id", "segment"}."""
        raise NotImplementedError

    def finish_eval(self, states: Any, new_state: dict[str, Any]) -> bool:
        """Return whether the source has ended, for use in `policy`; as in the guide, the client does not call it."""
        return new_state["segment"] in (EOS, GUIDE_EOS)

    def policy(self, states: Any) -> dict[str, Any]:
        """Return {"key": GET, "value": None or {"segment_size": ms}} or {"key": SEND, "value": word}."""
        raise NotImplementedError

    def reset(self) -> None:
        """Prepare for the next sentence."""

    def decode(self, session: EvaluationService, low: int = 0, high: int = 100_000) -> None:
        """Translate the sentences `low` to `high`, inclusive."""
        for sent_id in range(low, min(session.corpus_info()["num_sentences"] - 1, high) + 1):
            self._decode_one(session, sent_id)

    def _decode_one(self, session: EvaluationService, sent_id: int) -> None:
        self.reset()
        states = self.init_states()
        sent = None
        while sent != DEFAULT_EOS:
            action = self.policy(states)
            if action["key"] == GET:
                states = self.update_states(states, session.get_src(sent_id, action["value"]))
            elif action["key"] == SEND:
                sent = DEFAULT_EOS if action["value"] == GUIDE_EOS else action["value"]
                session.send_hypo(sent_id, sent)
            else:
                raise ConfigError(f"--agent: policy gave the key {action['key']!r}; it must be GET (0) or SEND (1)")


class TranslatorAgent(Agent):
    """Agent that wraps a translator of this project: `next(source)` is a GET, `yield` is a SEND."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    def _decode_one(self, session: EvaluationService, sent_id: int) -> None:
        for word in self.translator.translate(_source(session, sent_id)):
            if isinstance(word, Write):
                if word.erase:
                    raise ConfigError("--translator: this translator retracts words; this protocol can only append")
                word = word.token
            if word.split() != [word] or word == EOS:
                raise DataError(f"sentence {sent_id}: the translator wrote {word!r}, which is not one word")
            session.send_hypo(sent_id, word)
        session.send_hypo(sent_id, DEFAULT_EOS)


def _source(session: EvaluationService, sent_id: int) -> Iterator[str]:
    """Yield the words of a sentence, each requested when it is pulled."""
    while (segment := session.get_src(sent_id)["segment"]) != EOS:
        if not isinstance(segment, str):
            raise ConfigError("--translator: the server sends speech, but this translator reads text")
        yield segment


def evaluate(
    build: Callable[[], Agent], service: EvaluationService, start: int = 0, end: int | None = None, threads: int = 1
) -> int:
    """Translate the sentences `start` to `end` (inclusive) and return their number; each thread has its own agent.

    `build` is called once per thread, because an agent keeps the state of its sentence.  If the service has patience,
    sentences that an earlier client finished in this session are skipped.
    """
    last = service.corpus_info()["num_sentences"] - 1
    done = service.finished()
    numbers = [number for number in range(start, min(last, last if end is None else end) + 1) if number not in done]
    thread = local()

    def one(number: int) -> None:
        if not hasattr(thread, "agent"):
            thread.agent = build()
        thread.agent._decode_one(service, number)

    with ThreadPoolExecutor(max_workers=threads) as pool:
        list(pool.map(one, numbers))  # re-raise the error of a thread and skip the remaining sentences
    return len(numbers)


def agent_builder(name: str, arguments: Sequence[str]) -> Callable[[], Agent]:
    """Return a function that builds the agent "file.py:Name" or "module:Name" with its own command-line options."""
    agent, _ = agent_class("--agent", name, Agent)
    parser = ArgumentParser(prog=name, add_help=False)
    if hasattr(agent, "add_args"):
        agent.add_args(parser)
    parsed, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise ConfigError(f"--agent: {name} does not know {' '.join(unknown)}")
    return lambda: agent(parsed)
