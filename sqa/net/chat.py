"""The interface of a language model behind an endpoint: a prompt in, a reply out, within a budget of requests.

The last functions check addresses of services, and pause between repeated requests.
"""

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from tqdm import tqdm

from sqa.core.errors import ConfigError, SqaError

THINKING = "thinking"  # `Reply.finish` of a reply that has thoughts but no text


class EndpointError(SqaError):
    """Raised if the endpoint did not respond, or if its response violates the protocol."""

    exit_code = 3


class Halted(SqaError):
    """Raised instead of sending a request after another request has failed permanently."""


class Reply(NamedTuple):
    """The model's text, its cost in tokens (None: not reported), and how it ended."""

    text: str  # empty if the model withholds it
    prompt_tokens: int | None
    reply_tokens: int | None
    finish: str = ""  # "stop", "length", "content_filter", ...; THINKING: only thoughts; empty: not reported


class Task(NamedTuple):
    """A text for the model to continue, with its own token limit."""

    text: str
    begun: str  # the beginning of the reply; empty if there is none
    max_tokens: int  # maximum number of tokens of the reply


Prompt = str | Task
P = TypeVar("P", bound=Prompt)


def characters(prompt: Prompt) -> int:
    """Return the number of characters that a prompt sends."""
    return len(prompt) if isinstance(prompt, str) else len(prompt.text) + len(prompt.begun)


class Budget:
    """Limit on the number of requests that all threads send in total, with a count of failed requests."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0
        self.halted = threading.Event()  # once set, no thread sends another request
        self.faults = Counter[str]()  # kind of failure -> number of attempts
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Count one request.  Raises ConfigError if none is left, and Halted if no more requests may be sent."""
        with self._lock:
            if self.halted.is_set():
                raise Halted("not sent")
            if self.spent >= self.limit:
                raise ConfigError(f"max_requests: all {self.limit} are spent, including retries; raise it to continue")
            self.spent += 1

    def failed(self, kind: str) -> None:
        """Count a failed attempt; print the first of its kind on stderr."""
        with self._lock:
            self.faults[kind] += 1
            first = self.faults[kind] == 1
        if first:
            tqdm.write(f"sqa: llm: {kind}; failed requests are sent again (printed once)", file=sys.stderr)


class Chat(Protocol):
    """A model that replies to prompts; up to `workers` threads may call `complete` concurrently."""

    workers: int
    max_tokens: int
    budget: Budget

    @property
    def identity(self) -> str: ...

    def complete(self, prompt: Any) -> Reply: ...
    def served(self) -> str: ...


class LanguageModel(Protocol):
    """A model that replies to many prompts: behind an endpoint (`CachedChat`), or in this process (smt/lm/local.py)."""

    @property
    def identity(self) -> str: ...

    def ask(self, prompts: Sequence[P]) -> dict[P, Reply]: ...


# ------------------------------------------------------------------------------------------------------------- services


def url_problems(url: str) -> list[str]:
    """List the problems of a service's address in a config."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        return [f"url: expected something like http://localhost:4861, got {without_secret(url)!r}"]
    if parts.password:
        return ["url: run folders keep it, so it must not contain a password; name the token's variable in token_env"]
    return []


def without_secret(url: str) -> str:
    """Return an address without user name and password, for messages."""
    return re.sub(r"//[^/@]*@", "//", url)


def attempts(first: float, longest: float, number: int) -> Iterator[bool]:
    """Yield, before each attempt at a request, whether it is the last one; pause before every further attempt.

    There are `number` attempts.  The pause is `first` seconds and doubles up to `longest`.
    """
    for attempt in range(1, number + 1):
        yield attempt == number
        if attempt < number:
            time.sleep(min(first * 2 ** (attempt - 1), longest))
