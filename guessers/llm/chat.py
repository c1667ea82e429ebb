"""The contract of a chat model: one prompt in, one reply out, within a budget of requests."""

import threading
from typing import NamedTuple, Protocol

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


class Budget:
    """The number of requests that all threads together may send."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0
        self.halted = threading.Event()  # set: no thread sends another request
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Count one request; raises ConfigError if none is left and Halted if no other may be sent."""
        with self._lock:
            if self.halted.is_set():
                raise Halted("not sent")
            if self.spent >= self.limit:
                raise ConfigError(f"max_requests: all {self.limit} are spent, retries included; raise it to go on")
            self.spent += 1


class Chat(Protocol):
    """A model that replies to prompts; `complete` may be called by `workers` threads at a time."""

    workers: int
    max_tokens: int
    budget: Budget

    @property
    def identity(self) -> str: ...

    def complete(self, prompt: str) -> Reply: ...
