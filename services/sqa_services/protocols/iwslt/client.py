"""Client of an evaluation server, and the published guide's Agent, which a model implements.

    class MyAgent(Agent):                                 # sqa client iwslt --agent my_agent.py:MyAgent
        def init_states(self): return {"src": [], "sent": 0}
        def update_states(self, states, new_state): states["src"].append(new_state["segment"]); return states
        def policy(self, states): return {"key": GET, "value": None}  # or {"key": SEND, "value": "word"}

A sentence ends when the agent sends "</s>", or "<\\s>" as the guide prints it.  `EvaluationService` keeps the
method names that agents of 2020 call.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import local
from typing import Any

import requests
import urllib3

from sqa.core import ConfigError, DataError, Translator, Write
from sqa.files import parse_json
from sqa.net.chat import without_secret
from sqa_services.protocols.agents import agent_class
from sqa_services.protocols.iwslt.corpus import EOS, GUIDE_EOS

GET = 0
SEND = 1
DEFAULT_EOS = EOS
TIMEOUT = 60.0  # seconds to wait for the next bytes of a response
SHOWN = 80  # characters of a response that a message quotes
MAX_REPLY = 64 << 20  # maximum bytes of a response: a minute of speech at 96 kHz


class EvaluationService:
    """An evaluation server with the routes of the shared task.

    Many threads may use one object.  Raises DataError if a request fails, or if a response violates the protocol.  No
    request is repeated, because the protocol counts every request.
    """

    def __init__(self, url: str = "http://localhost:12321", session: str = "", token: str = "") -> None:
        self.base_url = f"{url.rstrip('/')}/sessions/{session}" if session else url.rstrip("/")
        self._token, self._local = token, local()

    def new_session(self) -> None:
        """Start a new session: forget everything that was read and written."""
        self._call("POST", "/")

    def get_scores(self) -> dict[str, Any]:
        """Return the scores of the written words."""
        return self._json("/result")

    def corpus_info(self) -> dict[str, Any]:
        """Return {"num_sentences": N}."""
        return self._json("/")

    def get_src(self, sent_id: int, extra_params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the next segment {"sent_id", "segment_id", "segment"}; `extra_params` may be {"segment_size": ms}."""
        return self._json("/src", {"sent_id": sent_id, **(extra_params or {})})

    def send_hypo(self, sent_id: int, hypo: str) -> None:
        """Send a target word, or "</s>" to end the sentence."""
        self._call("PUT", "/hypo", {"sent_id": sent_id}, hypo.encode())

    def _session(self) -> requests.Session:
        """Return the connections of this thread; requests adds the credentials of a URL."""
        if not hasattr(self._local, "session"):
            session = self._local.session = requests.Session()
            session.trust_env = False  # no proxy and no ~/.netrc
            if self._token:
                session.headers["Authorization"] = f"Bearer {self._token}"
        return self._local.session

    def _json(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        text = self._call("GET", path, params)
        try:
            value = parse_json(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise DataError(f"{without_secret(self.base_url)}{path}: expected a JSON object, got {text[:SHOWN]!r}")
        return value

    def _call(self, method: str, path: str, params: dict[str, Any] | None = None, body: bytes | None = None) -> str:
        """Return the text of a response with status 200; raise DataError if there is none."""
        url, named = self.base_url + path, f"{method} {without_secret(self.base_url)}{path}"
        request = partial(self._session().request, timeout=TIMEOUT, stream=True, allow_redirects=False)
        try:
            with request(method, url, params=params, data=body) as reply:
                content = reply.raw.read(MAX_REPLY + 1, decode_content=True)
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise DataError(f"{named}: the connection failed ({' '.join(str(error).split())[-SHOWN:]})") from error
        if reply.status_code != 200:
            advice = "; a token is needed" if reply.status_code == 401 else ""
            raise DataError(f"{named}: the server answered {reply.status_code}{advice}")
        if len(content) > MAX_REPLY:
            raise DataError(f"{named}: refused a response of more than {MAX_REPLY} bytes")
        return content.decode("utf-8", "replace")


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

    `build` is called once per thread, because an agent keeps the state of its sentence.
    """
    last = service.corpus_info()["num_sentences"] - 1
    numbers = range(start, min(last, last if end is None else end) + 1)
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
