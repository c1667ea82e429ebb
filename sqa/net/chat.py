"""The interface of a language model behind an endpoint: a prompt in, a reply out, within a budget of requests."""

import sys
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

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


class LanguageModel(Protocol):
    """A model that replies to many prompts: behind an endpoint (`CachedChat`), or in this process (smt/lm/local.py)."""

    @property
    def identity(self) -> str: ...

    def ask(self, prompts: Sequence[P]) -> dict[P, Reply]: ...
