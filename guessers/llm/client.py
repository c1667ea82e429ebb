"""A chat model behind any endpoint that speaks OpenAI's chat-completions protocol: one prompt in, one reply out.

    POST <base_url>/chat/completions   {"model", "messages", "temperature", "seed", "max_tokens"}
    200 {"choices": [{"message": {"content": "..."}}], "usage": {"prompt_tokens", "completion_tokens"}}

The endpoint is not trusted: what it sends is limited in size and time, redirects are not followed, and every way of
not answering has its own message.  429, 5xx, broken connections and timeouts are tried again: after the seconds that
Retry-After names, else after `backoff`, twice that, four times that, ...  The key is read from the environment when the
first request is made; it stands in no config, message, fingerprint or file.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import urllib3

from sqa import __version__
from sqa.core.errors import Bound, ConfigError, Count, NotNegative, Positive, SqaError, Whole, checked
from sqa.files.store import digest
from sqa.net.client import Failed, Http, url_problems, without_secret
from sqa.net.client import Reply as Answer

VERSION = 1  # of what is sent: raise it when the same config and prompt would ask something else
MAX_BODY = 1 << 20  # bytes of one answer read
MAX_WAIT = 300.0  # seconds; an endpoint that asks for a longer pause ends the run
MAX_TOKENS_COUNTED = 1 << 40  # a token count above this is no count
_NAME = f"sqa/{__version__}"
_WITHHELD = ("content_filter", "content_policy_violation")  # errors that are a model's way of not answering


class EndpointError(SqaError):
    """The endpoint did not answer, or answered something else than the protocol says."""

    exit_code = 3


class Halted(SqaError):
    """Another request has failed for good, so this one is not made."""


class _Again(Exception):
    """This attempt failed; another may not."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait  # seconds that the endpoint asks for


class Reply(NamedTuple):
    """What the model wrote, "" if it withheld an answer, and its cost in tokens (None = not reported)."""

    text: str
    prompt_tokens: int | None
    reply_tokens: int | None


@dataclass(frozen=True, slots=True)
@checked
class EndpointConfig:
    """Which endpoint, which of its models, and how many requests it is sent."""

    base_url: str  # what comes before /chat/completions: "https://api.example.org/v1", "http://localhost:8000/v1"
    model: str  # its name there
    api_key_env: str | None = None  # environment variable that holds the key; null = none is sent
    label: str = ""  # any name for what answers; change it with the model behind the name: replies are kept under it
    max_tokens: Count = 600  # tokens written per reply at most; ten guesses take about 300
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # what the endpoint calls that limit
    temperature: Annotated[float, Bound(0, 2)] | None = 0.0  # 0 = the likeliest reply; null = not sent
    seed: int | None = 0  # null = not sent
    requests_per_minute: Positive = 60.0  # started at most, retries included, evenly spaced
    concurrency: Count = 4  # requests under way at a time
    timeout: Positive = 60.0  # seconds for one answer
    retries: Whole = 5  # further attempts at a request
    backoff: NotNegative = 1.0  # seconds before the first of them; doubled each time

    def problems(self) -> list[str]:
        """Beside the bounds."""
        wrong = []
        if url_problems(self.base_url) or re.search(r"[\s\x00-\x1f@?#]", self.base_url):  # what may hold a secret
            shown = without_secret(self.base_url).partition("?")[0][:100]
            wrong.append(f"base_url: expected something like https://api.example.org/v1, got {shown!r}")
        if not self.model:
            wrong.append("model: expected the endpoint's name of a model, got nothing")
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.api_key_env):
            wrong.append("api_key_env: expected the NAME of an environment variable, not a key")
        return wrong


class Budget:
    """How many requests may be sent, over all threads."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Count one; ConfigError when there is none left."""
        with self._lock:
            if self.spent >= self.limit:
                raise ConfigError(f"max_requests: all {self.limit} are spent, retries included; raise it to go on")
            self.spent += 1


class Pace:
    """Lets requests start one after another, `60 / per_minute` seconds apart, over all threads."""

    def __init__(self, per_minute: float) -> None:
        self._gap, self._next = 60.0 / per_minute, 0.0
        self._lock = threading.Lock()

    def wait(self, halt: threading.Event) -> None:
        """Return when a request may start.  Raises Halted as soon as `halt` is set."""
        while True:
            with self._lock:
                now = time.monotonic()
                left = self._next - now
                if left <= 0 and not halt.is_set():
                    self._next = now + self._gap
                    return
            if halt.wait(max(left, 0)):
                raise Halted("not sent")

    def hold(self, seconds: float) -> None:
        """No request starts for so long."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


class Endpoint:
    """A chat model at an address.  `complete` may be called by `workers` threads at a time."""

    def __init__(self, config: EndpointConfig, budget: Budget) -> None:
        self.config, self.budget = config, budget
        self.url = f"{config.base_url.rstrip('/')}/chat/completions"
        self.workers, self.max_tokens = config.concurrency, config.max_tokens
        self._pace = Pace(config.requests_per_minute)
        self._answered = False  # once it has, a connection that fails is worth another attempt

    @cached_property
    def identity(self) -> str:
        """Hash of all that decides a reply but the prompt: address, model, label and parameters."""
        return digest([VERSION, self.url, self.config.label, self._request("")])

    def _request(self, prompt: str) -> dict[str, Any]:
        c = self.config
        request: dict[str, Any] = {"model": c.model, "messages": [{"role": "user", "content": prompt}]}
        request[c.token_limit] = c.max_tokens
        optional = {"temperature": c.temperature, "seed": c.seed}
        return request | {key: value for key, value in optional.items() if value is not None}

    def complete(self, prompt: str, halt: threading.Event) -> Reply:
        """The model's reply.  EndpointError when all attempts failed, ConfigError for a wrong key, path or model."""
        for attempt in range(self.config.retries + 1):
            self._pace.wait(halt)
            self.budget.spend()
            try:
                return self._attempt(prompt)
            except _Again as failure:
                problem = failure
            if problem.wait:
                self._pace.hold(problem.wait)
            elif attempt < self.config.retries and halt.wait(min(self.config.backoff * 2**attempt, MAX_WAIT)):
                raise Halted("not sent again")
        attempts = self.config.retries + 1
        times = f"{attempts} times" if attempts > 1 else "once (retries: 0)"
        raise EndpointError(f"{self.url}: {problem}; asked {times}")

    @cached_property
    def _http(self) -> Http:
        return Http(self.config.timeout, MAX_BODY, self._key, proxies=True)

    @cached_property
    def _key(self) -> str:
        """The key, "" for none.  ConfigError, which does not show it, if it is missing or cannot be sent."""
        name = self.config.api_key_env
        if name is None:
            return ""
        key = os.environ.get(name, "").strip()
        if not key:
            raise ConfigError(f"api_key_env: the environment variable {name} is not set; export {name}=... first")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise ConfigError(f"api_key_env: the environment variable {name} does not hold a key")
        return key

    def _attempt(self, prompt: str) -> Reply:
        """One request.  Raises _Again for a failure that may pass."""
        data, headers = json.dumps(self._request(prompt)).encode(), {"Content-Type": "application/json"}
        try:
            sent = self._http.ask("POST", self.url, data, headers | {"User-Agent": _NAME})
        except Failed as error:
            if error.kind == "absent" and not self._answered:
                raise EndpointError(f"{self.url}: unreachable; start the server, or correct base_url") from error
            if error.kind in ("large", "insecure"):
                raise EndpointError(f"{self.url}: {error}") from error
            raise _Again(str(error)) from error
        self._answered = True
        text = sent.text.replace(self._key, "***") if len(self._key) >= 8 else sent.text  # some echo a key they refuse
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        return self._reply(answer, text) if sent.status == 200 else self._failure(sent, answer, text)

    def _reply(self, answer: Any, text: str) -> Reply:
        """The reply in an answer with status 200."""
        try:
            content = answer["choices"][0]["message"]["content"]
        except (LookupError, TypeError) as error:
            raise _Again(f"not a chat-completions answer, it begins {text[:60]!r}; is base_url right?") from error
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        # None and lists of parts are what a model sends that withholds an answer or calls a tool: no text
        content = content.encode("utf-8", "replace").decode() if isinstance(content, str) else ""
        return Reply(content, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))

    def _failure(self, sent: Answer, answer: Any, text: str) -> Reply:
        """What a status other than 200 means: nothing said, another attempt, or the end."""
        status, error = sent.status, answer.get("error") if isinstance(answer, dict) else None
        message = _server_message(answer, text)
        failure = f"HTTP {status}{f' ({message})' if message else ''}"
        if status == 400 and isinstance(error, dict) and error.get("code") in _WITHHELD:
            return Reply("", None, None)
        if status in (408, 409, 425, 429) or status >= 500:
            wait = _retry_after(sent.headers.get("Retry-After"))
            if wait is not None and wait > MAX_WAIT:
                raise EndpointError(f"{self.url}: {failure}: asks to wait {wait:.0f} seconds; run again then")
            raise _Again(failure, wait)
        variable, model = self.config.api_key_env, self.config.model
        key = f"is the key in ${variable} right?" if variable else "name the variable of its key in api_key_env"
        mends = {401: key, 403: key, 404: f"has it the model {model!r}, and is base_url right (most end in /v1)?"}
        mends |= dict.fromkeys(range(300, 400), "it has moved; give the new address as base_url")
        if status in mends:
            raise ConfigError(f"endpoint: {self.url}: {failure}; {mends[status]}")
        raise EndpointError(f"{self.url}: {failure}")


def _count(value: Any) -> int | None:
    """A number of tokens, None for anything else."""
    return value if type(value) is int and 0 <= value < MAX_TOKENS_COUNTED else None


def _server_message(answer: Any, text: str) -> str:
    """The endpoint's own words about a failure, on one line."""
    message = answer.get("error", answer.get("message")) if isinstance(answer, dict) else text
    message = message.get("message") if isinstance(message, dict) else message
    return " ".join(message.split())[:200] if isinstance(message, str) else ""


def _retry_after(header: str | None) -> float | None:
    """Seconds that a Retry-After header names, as a number or a date; None without a header or with a wrong one."""
    if header is None or len(header) > 100:
        return None
    try:
        return float(urllib3.Retry(retry_after_max=10**9).parse_retry_after(header))
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return None
