"""A language model behind an endpoint: a prompt in, a reply out, within a budget of requests, with a cache of replies.

The cache is an SQLite file with the replies by the hash of the request, so that no completed request is repeated.
Replies are written atomically, several runs may share the file, and a killed run finds every reply it had received.
The file holds replies and counts, but no prompts and no keys.

The functions under "services" check addresses of services, and pause between repeated requests.
"""

import re
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from tqdm import tqdm

from sqa.core import ConfigError, DataError, SqaError, cache_dir
from sqa.files import digest

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


# ---------------------------------------------------------------------------------------------------------------- cache

WAIT_FOR_OTHERS = 60.0  # seconds to wait while another run writes
SAME, LONGER = 10, 40  # prompts of different lengths with one number of tokens, and the range of their characters
SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    id INTEGER PRIMARY KEY,             -- in the order of arrival
    key TEXT NOT NULL UNIQUE,           -- sha256 of source and prompt
    source TEXT NOT NULL,               -- Chat.identity
    prompt_characters INTEGER NOT NULL,
    prompt_tokens INTEGER,              -- NULL = not reported
    reply_tokens INTEGER,
    text TEXT NOT NULL,
    finish TEXT NOT NULL DEFAULT '',    -- Reply.finish
    day TEXT NOT NULL                   -- date of arrival
)
"""
_REPLY = "SELECT text, prompt_tokens, reply_tokens, finish FROM replies WHERE key = ?"


class Cache:
    """Replies by key, in a file (None: llm-replies.sqlite in the cache folder).

    The constructor does no I/O; each call opens the file, so threads may share the object.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path.expanduser() if path else cache_dir() / "llm-replies.sqlite"

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return a dict that maps the keys in the cache to their replies; other keys are left out."""
        if not self.path.is_file():
            return {}
        replies = {}
        with self._open() as file:
            for key in keys:
                row = file.execute(_REPLY, [key]).fetchone()
                if row is not None:
                    replies[key] = Reply(*row)
        return replies

    def put(self, key: str, source: str, prompt: Prompt, reply: Reply) -> Reply:
        """Store a reply and return it, or return the earlier reply if another run has stored one for this key."""
        today = datetime.now(UTC).date().isoformat()
        cost = (characters(prompt), reply.prompt_tokens, reply.reply_tokens)
        row = [key, source, *cost, reply.text, reply.finish, today]
        with self._open() as file:
            file.execute(
                "INSERT OR IGNORE INTO replies"
                " (key, source, prompt_characters, prompt_tokens, reply_tokens, text, finish, day)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            return Reply(*file.execute(_REPLY, [key]).fetchone())

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, creating it if needed.

        Raises DataError if the file is damaged or unusable.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=WAIT_FOR_OTHERS)) as file, file:  # commits, or rolls back
                file.execute(SCHEMA)
                yield file
        except (OSError, sqlite3.OperationalError) as error:  # locked, full disk, read-only folder, another table
            raise DataError(f"{self.path}: the cached replies cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self.path}: the cached replies are damaged ({error}); delete the file") from error


class Plateau:
    """Detector of prompts that the server cuts: many prompts of growing length with the largest number of tokens."""

    def __init__(self) -> None:
        self._most, self._lengths = 0, set[int]()

    def seen(self, length: int, tokens: int | None) -> bool:
        """Record the characters and reported tokens of a prompt; return True once longer prompts stop costing more."""
        if tokens is None or tokens < self._most or len(self._lengths) > SAME:
            return False
        if tokens > self._most:
            self._most, self._lengths = tokens, set()
        self._lengths.add(length)
        return len(self._lengths) > SAME and max(self._lengths) - min(self._lengths) >= LONGER


class CachedChat:
    """A chat with a cache of replies: each prompt is sent only once."""

    def __init__(self, chat: Chat, cache: Cache) -> None:
        self.chat, self.cache = chat, cache
        self._plateau = Plateau()

    @property
    def identity(self) -> str:
        """Return a hash of everything besides the prompt that affects a reply."""
        return self.chat.identity

    def key(self, prompt: Prompt) -> str:
        """Return the cache key of a prompt."""
        return digest([self.chat.identity, prompt])

    def missing(self, prompts: Sequence[str]) -> list[str]:
        """Return the distinct prompts without a cached reply, in order."""
        keys = {self.key(prompt): prompt for prompt in prompts}
        kept = self.cache.get(list(keys))
        return [prompt for key, prompt in keys.items() if key not in kept]

    def ask(self, prompts: Sequence[P]) -> dict[P, Reply]:
        """Return a dict that maps prompts to replies; each reply is cached as soon as it arrives.

        Raises ConfigError before sending anything if the budget is too small.  If a request fails permanently, no
        further request is sent, replies to requests in progress are cached, and then the error is raised.
        """
        keys = {prompt: self.key(prompt) for prompt in prompts}
        replies = self.cache.get(list(keys.values()))
        missing = {prompt: key for prompt, key in keys.items() if key not in replies}
        if missing:
            budget = self.chat.budget
            if budget.spent + len(missing) > budget.limit:
                raise ConfigError(
                    f"max_requests: {len(missing)} more are needed here, {budget.spent} of {budget.limit} are spent; "
                    "raise it to continue (finished replies are stored)"
                )
            replies |= self._send(missing)
        for prompt, key in keys.items():
            if self._plateau.seen(characters(prompt), replies[key].prompt_tokens):
                cut = f"longer prompts still cost {replies[key].prompt_tokens} tokens, so the server may cut them"
                tqdm.write(f"sqa: llm: {cut}; raise the server's context size", file=sys.stderr)
        return {prompt: replies[key] for prompt, key in keys.items()}

    def _send(self, missing: Mapping[P, str]) -> dict[str, Reply]:
        """Send as many requests concurrently as the chat allows; return a dict that maps keys to replies."""
        halted, source = self.chat.budget.halted, self.chat.identity
        halted.clear()

        def send(prompt: Prompt, key: str) -> Reply:
            if halted.is_set():
                raise Halted("not sent")
            try:
                return self.cache.put(key, source, prompt, self.chat.complete(prompt))
            except SqaError:
                halted.set()  # before this thread takes the next prompt
                raise

        pool = ThreadPoolExecutor(min(self.chat.workers, len(missing)), thread_name_prefix="llm")
        try:
            under_way = {key: pool.submit(send, prompt, key) for prompt, key in missing.items()}
            wait(under_way.values(), return_when=FIRST_EXCEPTION)
        finally:  # also on an interrupt
            halted.set()
            pool.shutdown(wait=True, cancel_futures=True)
        failures = [future.exception() for future in under_way.values() if not future.cancelled()]
        causes = [error for error in failures if error is not None and not isinstance(error, Halted)]
        if causes and isinstance(causes[0], EndpointError):
            raise EndpointError(f"{causes[0]}; all finished replies are stored: run again to continue") from causes[0]
        if causes:
            raise causes[0]
        return {key: future.result() for key, future in under_way.items()}
