"""A QANTA system at an HTTP address, as guesser and buzzer of a run.

    guesser: {name: qanta_service, url: "http://localhost:4861"}
    buzzer: {name: qanta_service}

After each word the system is sent the text so far and answers a guess and whether it buzzes.  The guess is the only
one of its step; its score is 1 if the system buzzes there and 0 if not, which is all that the buzzer of the same name
reads.  A system that buzzes without a guess has guessed the page "", which is never right.

All prefixes of a text are sent in order, in batches if the system takes them.  `question_idx` counts the texts that do
not continue the one before, `sent_index` the words before the last one that end in a full stop or the like, and
`char_index` is the length of the text.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqa.core.errors import NotNegative, Positive, Whole, checked
from sqa.core.types import Guess
from sqa.files.store import digest
from sqa.net.client import Service, token_from, url_problems

VERSION = 1  # raise when the same replies would give other guesses
ROOT = "/api/1.0/quizbowl"
MOST_BATCH = 1_000  # questions sent at once, whatever a system says it takes
LONGEST = 500  # characters of a page's title
BUZZED, WAITED = 1.0, 0.0  # scores of a guess


@dataclass(frozen=True, slots=True)
@checked
class QantaServiceConfig:
    """What `guesser: {name: qanta_service, ...}` takes."""

    url: str = "http://localhost:4861"  # what comes before /api/1.0/quizbowl
    label: str = ""  # any name for what answers; change it with the system behind the address: results are kept
    timeout: Positive = 60.0  # seconds for one reply
    retries: Whole = 3  # further attempts after a broken connection or a 5xx
    ready: NotNegative = 60.0  # seconds that it may take to say it is ready
    token_env: str | None = None  # environment variable with a bearer token; null = none is sent

    def problems(self) -> list[str]:
        """Beside the bounds."""
        return url_problems(self.url)


class QantaServiceGuesser:
    """Asks a system."""

    def __init__(self, config: QantaServiceConfig, service: Service) -> None:
        self._config, self._service = config, service
        self._batch = 0  # questions in one request; 0 = its status was not asked for yet
        self._question, self._last = -1, ""  # number and text of the last question

    def fingerprint(self) -> str:
        """Hash of the address and the label: what answers there is known to the user alone."""
        return digest(["qanta_service", VERSION, self._config.url, self._config.label])

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """One guess for each text, none for a text without words or if `n` is 0.  RemoteProtocolError."""
        guesses: list[list[Guess]] = [[] for _ in texts]
        indices = [index for index, text in enumerate(texts) if n > 0 and text.strip()]
        if indices and not self._batch:
            self._batch = self._status()
        for start in range(0, len(indices), max(self._batch, 1)):
            chunk = indices[start : start + self._batch]
            acts = self._ask([self._request(texts[index]) for index in chunk])
            for index, act in zip(chunk, acts, strict=True):
                guesses[index] = list(self._guesses(act))
        return guesses

    def _request(self, text: str) -> dict[str, Any]:
        if not self._last or not text.startswith(self._last):
            self._question += 1
        self._last = text
        ended = sum(word.endswith((".", "?", "!", '."', ".”")) for word in text.split()[:-1])
        return {"question_idx": self._question, "sent_index": ended, "char_index": len(text), "text": text}

    def _status(self) -> int:
        """How many questions it takes at once; waits until it is ready."""
        end = time.monotonic() + self._config.ready
        while True:
            status = self._service.json("GET", f"{ROOT}/status")
            if not isinstance(status, dict):
                raise self._problem("GET", "status", "a JSON object was expected", status)
            if status.get("ready", True):
                break
            if time.monotonic() > end:
                raise self._service.problem("GET", f"{ROOT}/status", f"not ready after {self._config.ready:g} seconds")
            time.sleep(min(1.0, self._config.ready))
        size = status.get("batch_size")
        if not status.get("batch") or not isinstance(size, int) or size < 2:
            return 1
        return min(size, MOST_BATCH)

    def _ask(self, questions: list[dict[str, Any]]) -> list[Any]:
        """A reply for each question."""
        if self._batch == 1:
            return [self._service.json("POST", f"{ROOT}/act", question) for question in questions]
        acts = self._service.json("POST", f"{ROOT}/batch_act", {"questions": questions})
        if not isinstance(acts, list) or len(acts) != len(questions):
            raise self._problem("POST", "batch_act", f"a list of {len(questions)} was expected", acts)
        return acts

    def _guesses(self, act: Any) -> Iterator[Guess]:
        """The guess in a reply; none where it neither guesses nor buzzes."""
        guess, buzz = (act.get("guess"), act.get("buzz")) if isinstance(act, dict) else (0, None)
        guess = "" if guess is None else guess
        if not isinstance(guess, str) or len(guess) > LONGEST or buzz not in (True, False):
            raise self._problem("POST", "act", '{"guess": TITLE, "buzz": true or false} was expected', act)
        if guess or buzz:
            yield Guess(guess, BUZZED if buzz else WAITED)

    def _problem(self, method: str, path: str, expected: str, reply: Any) -> Exception:
        return self._service.problem(method, f"{ROOT}/{path}", f"{expected}, it said {str(reply)[:80]!r}")


def build(config: QantaServiceConfig) -> QantaServiceGuesser:
    """The guesser of a config; nothing is asked yet.  No token in the variable: ConfigError."""
    return QantaServiceGuesser(
        config, Service(config.url, config.timeout, config.retries, token_from(config.token_env))
    )
