"""A loopback server for the chat-completions and completions protocols, with valid or faulty responses.

    with ChatServer(knows_capitals) as server:
        EndpointConfig(base_url=server.base_url, model="tiny")
        server.prompts      # every prompt received, in order of arrival

A function `(prompt, number) -> Answer` defines each response; number is 1 for the first request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from needs import require

from guessers.llm.guesser import LlmConfig, LlmGuesser, build
from sqa.core import Guess
from sqa.net.endpoint import EndpointConfig

CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"
WORDS = "the town of Potosí lies in Bolivia near the mountain of Cerro Rico where Spain took silver".split()


@dataclass(frozen=True)
class Answer:
    """An HTTP response of the server."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0  # seconds before the response
    drip: float = 0.0  # seconds after each byte of the body
    hang_up: bool = False  # close the connection without a response


Behaviour = Callable[[str, int], Answer]


def completion(content: Any, prompt: str = "", usage: bool = True) -> Answer:
    """Return a typical response of the chat protocol; four characters count as a token."""
    message = {"role": "assistant", "content": content}
    body: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "tiny"}
    body["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
    if usage:
        read, written = len(prompt) // 4, len(str(content)) // 4
        body["usage"] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return Answer(json.dumps(body).encode())


def continuation(text: str, prompt: str = "") -> Answer:
    """Return a response of the completions protocol."""
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
    body = {"object": "text_completion", "model": "tiny", "choices": [{"index": 0, "text": text}], "usage": usage}
    return Answer(json.dumps(body).encode())


def last_pair(prompt: str) -> tuple[list[str], list[str]]:
    """Return the words of the last source in a translator's prompt, and the words of the target written so far."""
    source, target = prompt.rsplit("\n", 2)[-2:]
    return source.split()[1:], target.split()[1:]


def translating(prompt: str, number: int) -> Answer:
    """Respond with a translation: the remaining source words, spelt backwards."""
    source, target = last_pair(prompt)
    return continuation("".join(f" {word[::-1]}" for word in source[len(target) :]), prompt)


def error(status: int, message: str = "no luck", code: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """Return a typical error response."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Answer(json.dumps(body).encode(), status, headers or {})


def guesses_in(prompt: str) -> list[dict[str, Any]]:
    """Return the capitalised words of the question in a prompt as guesses, the last word first."""
    words = prompt.rpartition("Question so far: ")[2].split()
    pages = dict.fromkeys(word.strip(".,") for word in reversed(words) if word[0].isupper())
    return [{"page": page, "confidence": round(0.5 / place, 3)} for place, page in enumerate(pages, start=1)]


def normal(prompt: str, number: int) -> Answer:
    """Respond with the requested JSON."""
    return completion(json.dumps({"guesses": guesses_in(prompt)}), prompt)


def nonsense(prompt: str, number: int) -> Answer:
    """Respond without JSON."""
    return completion("I think it is Spain, or perhaps not.", prompt)


def huge(prompt: str, number: int) -> Answer:
    """Respond with a body of two megabytes."""
    return completion("x" * (2 << 20))


def slow(prompt: str, number: int) -> Answer:
    """Respond after three seconds."""
    return Answer(normal(prompt, number).body, wait=3.0)


def dripping(prompt: str, number: int) -> Answer:
    """Respond slowly, with a byte every 20 ms."""
    return Answer(normal(prompt, number).body, drip=0.02)


def failing(times: int, failure: Answer, then: Behaviour = normal) -> Behaviour:
    """Return a behaviour that responds with `failure` to the first `times` requests, and then behaves like `then`."""
    return lambda prompt, number: failure if number <= times else then(prompt, number)


def pages(guesses: list[Guess]) -> list[str]:
    """Return the pages of guesses."""
    return [guess.page for guess in guesses]


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with a smaller queue, one of many concurrent connections waits a second
    daemon_threads = False  # closing waits for the threads


class ChatServer:
    """A server that listens within a `with` block, during which `behaviour` may be replaced."""

    def __init__(self, behaviour: Behaviour = normal, key: str | None = None) -> None:
        """Create the server; with a `key`, it refuses requests without the key."""
        require("llm")  # its clients use openai
        self.behaviour, self.key = behaviour, key
        self.prompts: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_a_time = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ChatServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, key: str | None, request: dict[str, Any]) -> Answer:
        """Return the response to a request."""
        if path not in (CHAT, PLAIN):
            return Answer(b"<html>not found</html>", 404)
        prompt = request["prompt"] if path == PLAIN else request["messages"][-1]["content"]
        with self._lock:
            self.prompts.append(prompt)
            self.requests.append(request)
            self.keys.append(key)
            number = len(self.prompts)
            self._under_way += 1
            self.most_at_a_time = max(self.most_at_a_time, self._under_way)
        try:
            if self.key is not None and key != f"Bearer {self.key}":
                return error(401, f"Incorrect API key provided: {key}")
            answer = self.behaviour(prompt, number)
            self._over.wait(answer.wait)
            return answer
        finally:
            with self._lock:
                self._under_way -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                server.headers.append(dict(self.headers))
                answer = server.answer(self.path, self.headers["Authorization"], json.loads(data))
                self.close_connection = True  # an open connection would delay the end of the server
                if answer.hang_up:
                    return
                with suppress(OSError):  # the client has disconnected
                    self.send_response(answer.status)
                    for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    step = 1 if answer.drip else len(answer.body) or 1
                    for start in range(0, len(answer.body), step):
                        self.wfile.write(answer.body[start : start + step])
                        if server._over.wait(answer.drip):
                            return

            def log_message(self, *_: object) -> None:
                return

        return Handler


def quick_guesser(
    cache: Path, server: ChatServer | str, every: int = 1, endpoint: dict[str, Any] | None = None, **keys: Any
) -> LlmGuesser:
    """Return a guesser that queries a server or URL with short waits; `keys` are further keys of its config."""
    url = server if isinstance(server, str) else server.base_url
    options = {"timeout": 5.0, "backoff": 0.01, "requests_per_minute": 60000.0, **(endpoint or {})}
    config = EndpointConfig(base_url=url, model="tiny", **options)
    return build(LlmConfig(**{"endpoint": config, "every": every, "cache": cache, **keys}))
