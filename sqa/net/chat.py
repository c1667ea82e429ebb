"""The contract of a language model behind an endpoint: one prompt in, one reply out, within a budget of requests."""

import sys
import threading
from collections import Counter
from typing import Any, NamedTuple, Protocol

from tqdm import tqdm

from sqa.core.errors import ConfigError, SqaError


class EndpointError(SqaError):
    """The endpoint did not answer, or its answer does not follow the protocol."""

    exit_code = 3


class Halted(SqaError):
    """Another request has failed for good, so this one is not sent."""


class Reply(NamedTuple):
    """The model's text and its cost in tokens (None: not reported); the text is empty if the model withholds it."""

    text: str
    prompt_tokens: int | None
    reply_tokens: int | None


class Task(NamedTuple):
    """A text for the model to continue, with a limit of its own."""

    text: str
    begun: str  # the beginning of the reply; empty if there is none
    max_tokens: int  # tokens of the reply at most


Prompt = str | Task


def characters(prompt: Prompt) -> int:
    """Return the number of characters that a prompt sends."""
    return len(prompt) if isinstance(prompt, str) else len(prompt.text) + len(prompt.begun)


class Budget:
    """The number of requests that all threads together may send, and the faults of those that were sent."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0
        self.halted = threading.Event()  # set: no thread sends another request
        self.faults = Counter[str]()  # kind of a failed attempt -> how often
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Count one request; raises ConfigError if none is left and Halted if no other may be sent."""
        with self._lock:
            if self.halted.is_set():
                raise Halted("not sent")
            if self.spent >= self.limit:
                raise ConfigError(f"max_requests: all {self.limit} are spent, retries included; raise it to go on")
            self.spent += 1

    def failed(self, kind: str) -> None:
        """Count a failed attempt; the first of its kind is printed on stderr."""
        with self._lock:
            self.faults[kind] += 1
            first = self.faults[kind] == 1
        if first:
            tqdm.write(f"sqa: llm: {kind}; failed requests are sent again (said once)", file=sys.stderr)


class Chat(Protocol):
    """A model that replies to prompts; `complete` may be called by `workers` threads at a time."""

    workers: int
    max_tokens: int
    budget: Budget

    @property
    def identity(self) -> str: ...

    def complete(self, prompt: Any) -> Reply: ...
