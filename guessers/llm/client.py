"""A chat model behind any endpoint that speaks OpenAI's chat-completions protocol: one prompt in, one reply out.

    POST <base_url>/chat/completions   {"model", "messages", "temperature", "seed", "max_tokens"}
    200 {"choices": [{"message": {"content": "..."}}], "usage": {"prompt_tokens", "completion_tokens"}}

The endpoint is not trusted: what it sends is limited in size and time, redirects are not followed, and every way of
not answering has its own message.  429, 5xx, broken connections and timeouts are tried again: after the seconds that
Retry-After names, else after `backoff`, twice that, four times that, ...  The key is read from the environment when the
first request is made; it stands in no config, message, fingerprint or file.
"""

import json
import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import urllib3
from msgspec import Meta

from sqa import __version__
from sqa.core.errors import ConfigError, SqaError
from sqa.core.schema import Count, NotNegative, Positive, Whole, checked
from sqa.files.store import digest
from sqa.net.client import Failed, Http

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

    base_url: Annotated[str, 'what comes before /chat/completions: "http://localhost:8000/v1"']
    model: Annotated[str, "its name there"]
    api_key_env: Annotated[str | None, "environment variable that holds the key; null = none is sent"] = None
    label: Annotated[str, "any name for what answers, under which replies are kept"] = ""
    max_tokens: Annotated[Count, "tokens written per reply at most; ten guesses take about 300"] = 600
    token_limit: Annotated[Literal["max_tokens", "max_completion_tokens"], "the endpoint's name of it"] = "max_tokens"
    temperature: Annotated[Annotated[float, Meta(ge=0, le=2)] | None, "0 = the likeliest reply; null = not sent"] = 0.0
    seed: Annotated[int | None, "null = not sent"] = 0
    json_mode: Annotated[bool, "send response_format json_object, where the endpoint knows it"] = False
    requests_per_minute: Annotated[Positive, "started at most, retries included, evenly spaced"] = 60.0
    concurrency: Annotated[Count, "requests under way at a time"] = 4
    timeout: Annotated[Positive, "seconds for one answer"] = 60.0
    retries: Annotated[Whole, "further attempts at a request"] = 5
    backoff: Annotated[NotNegative, "seconds before the first of them; doubled each time"] = 1.0

    def problems(self) -> list[str]:
        """Beside the bounds."""
        wrong = []
        if not is_address(self.base_url):
            wrong.append(f"base_url: expected something like https://api.example.org/v1, got {redacted(self.base_url)}")
        if not self.model:
            wrong.append("model: expected the endpoint's name of a model, got nothing")
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.api_key_env):
            wrong.append("api_key_env: expected the NAME of an environment variable, not a key")
        return wrong


def is_address(url: str) -> bool:
    """True for the http or https URL of a server without a user, a query or a fragment (which may hold secrets)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or "@" in parts.netloc or re.search(r"[\s\x00-\x1f]", url))
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and plain


def redacted(url: str) -> str:
    """A URL for messages, without what may be a secret."""
    return repr(re.sub(r"//[^/@]*@", "//...@", url).partition("?")[0][:100])


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
        self._http: dict[str, Http] = {}  # by key
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
        request |= {key: value for key, value in optional.items() if value is not None}
        return request | ({"response_format": {"type": "json_object"}} if c.json_mode else {})

    def complete(self, prompt: str, halt: threading.Event) -> Reply:
        """The model's reply.  EndpointError when all attempts failed, ConfigError for a wrong key, path or model."""
        key = self._key()
        for attempt in range(self.config.retries + 1):
            self._pace.wait(halt)
            self.budget.spend()
            try:
                return self._attempt(prompt, key)
            except _Again as failure:
                problem = failure
            if problem.wait:
                self._pace.hold(problem.wait)
            elif attempt < self.config.retries and halt.wait(min(self.config.backoff * 2**attempt, MAX_WAIT)):
                raise Halted("not sent again")
        attempts = self.config.retries + 1
        times = f"{attempts} times" if attempts > 1 else "once (retries: 0)"
        raise EndpointError(f"{self.url}: {problem}; asked {times}")

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

    def _attempt(self, prompt: str, key: str) -> Reply:
        """One request.  Raises _Again for a failure that may pass."""
        status, headers, body = self._post(json.dumps(self._request(prompt)).encode(), key)
        self._answered = True
        text = body.decode("utf-8", "replace")
        text = text.replace(key, "***") if len(key) >= 8 else text  # some echo the key they refuse
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if status == 200 and isinstance(answer, dict) and "error" in answer and "choices" not in answer:
            status = _code(answer, default=502)  # gateways send a model's failure in an answer of their own
        if status == 200:
            return self._reply(answer, text)
        return self._failure(status, headers, answer, text)

    def _post(self, data: bytes, key: str) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer."""
        headers = {"Content-Type": "application/json", "User-Agent": _NAME}
        http = self._http.setdefault(key, Http(self.config.timeout, MAX_BODY, key, proxies=True))
        try:
            reply = http.ask("POST", self.url, data, headers)
        except Failed as error:
            reason = _short(error.__cause__ or error, key)
            if error.kind == "late":
                raise _Again(f"no complete answer in {self.config.timeout:g} seconds") from error
            if error.kind == "large":
                raise EndpointError(f"{self.url}: an answer of more than {MAX_BODY} bytes, refused") from error
            if error.kind == "insecure":
                raise EndpointError(f"{self.url}: no secure connection: {reason}") from error
            if error.kind == "absent" and not self._answered:
                raise EndpointError(f"{self.url}: unreachable; start the server, or correct base_url") from error
            raise _Again(f"the connection broke ({reason})") from error
        return reply.status, reply.headers, reply.content

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

    def _failure(self, status: int, headers: Mapping[str, str], answer: Any, text: str) -> Reply:
        """What a status other than 200 means: nothing said, another attempt, or the end."""
        error = answer.get("error") if isinstance(answer, dict) else None
        message = _server_message(answer, text)
        failure = f"HTTP {status}{f' ({message})' if message else ''}"
        variable = self.config.api_key_env
        if status == 400 and isinstance(error, dict) and error.get("code") in _WITHHELD:
            return Reply("", None, None)
        if status in (408, 409, 425, 429) or status >= 500:
            wait = _retry_after(headers.get("Retry-After"))
            if wait is not None and wait > MAX_WAIT:
                raise EndpointError(f"{self.url}: {failure}: asks to wait {wait:.0f} seconds; run again then")
            raise _Again(failure, wait)
        if status in (401, 403):
            mend = f"is the key in ${variable} right?" if variable else "name the variable of its key in api_key_env"
            raise ConfigError(f"endpoint: {self.url}: {failure}; {mend}")
        if status == 404:
            question = f"does it have the model {self.config.model!r}, and base_url right (most end in /v1)?"
            raise ConfigError(f"endpoint: {self.url}: {failure}; {question}")
        if 300 <= status < 400:
            raise ConfigError(f"endpoint: {self.url}: HTTP {status}, it has moved; give the new address as base_url")
        raise EndpointError(f"{self.url}: {failure}")


def _code(answer: Mapping[str, Any], default: int) -> int:
    """The status in an error that was sent as a success."""
    code = answer["error"].get("code") if isinstance(answer["error"], dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else default


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


def _short(error: BaseException, key: str) -> str:
    """The end of an error's message, which is where the reason stands."""
    message = " ".join(str(error).split())
    return (message.replace(key, "***") if key else message)[-100:] or type(error).__name__
