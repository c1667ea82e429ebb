"""An agent served by SimulEval 1.1 (`simuleval --standalone`), or any service with its protocol, as a translator.

    translator: {name: simuleval_service, url: "http://localhost:12321"}

The service is driven as in SimulEval's remote evaluator.  After a reset, each source word is sent and a segment is
received, with empty segments after the last word, until a received segment is `finished`.  If the source knows its
length, the end is announced with the last word, as in SimulEval (see agent.py).  The package itself is not needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from sqa.core.schema import Positive, checked
from sqa.core.types import Emission, Question
from sqa.files.store import digest
from sqa.net.client import Service, token_from, url_problems
from sqa_services.simuleval.agent import driven, emissions_of

VERSION = 1  # increase when the way in which a service is driven changes


@dataclass(frozen=True, slots=True)
@checked
class SimulevalServiceConfig:
    """Keys of `translator: {name: simuleval_service, ...}`."""

    url: Annotated[str, "address of the service"] = "http://localhost:12321"
    label: Annotated[str, "any name of the served system; results are stored under it"] = ""
    timeout: Annotated[Positive, "seconds for one reply"] = 600.0
    token_env: Annotated[str | None, "environment variable with a bearer token; null = send no token"] = None

    def problems(self) -> list[str]:
        """Return the problems of the address."""
        return url_problems(self.url)


class SimulevalServiceTranslator:
    """A translator that drives one service through sentence after sentence."""

    def __init__(self, config: SimulevalServiceConfig, service: Service) -> None:
        self._config, self._service = config, service

    def fingerprint(self) -> str:
        """Return a hash of the address and the label; only the user knows which program answers at the address."""
        return digest(["simuleval_service", VERSION, self._config.url, self._config.label])

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Yield the words of one sentence; each segment pulls a word until the service has seen the end."""
        self._service.text("POST", "/reset")
        return driven(source, self._pushpop, lambda problem: self._service.problem("GET", "/output", problem))

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions, sentence by sentence; every source knows its length."""
        return emissions_of(self.translate, questions)

    def _pushpop(self, index: int, word: str | None, ended: bool) -> tuple[list[str], bool]:
        """Return the words of the returned segment, and whether it is the last."""
        self._service.text("PUT", "/input", _segment(index, word, ended))
        reply = self._service.json("GET", "/output")
        segment = reply if isinstance(reply, dict) else {}
        content, finished, empty = segment.get("content"), segment.get("finished"), segment.get("is_empty", False)
        if isinstance(finished, bool) and (empty is True or isinstance(content, str)):
            return [] if empty else str(content).split(), finished
        expected = "expected a text segment with content, finished and is_empty"
        raise self._service.problem("GET", "/output", f"{expected}, got {str(reply)[:80]!r}")


def _segment(index: int, word: str | None, finished: bool) -> dict[str, Any]:
    """Return a segment in SimulEval's format: a word, or an empty segment."""
    empty = word is None
    return {
        "index": index,
        "content": [] if word is None else word,
        "finished": finished,
        "is_empty": empty,
        "data_type": None if empty else "text",
        "tgt_lang": None,
        "config": {},
    }


def build(config: SimulevalServiceConfig) -> SimulevalServiceTranslator:
    """Return the translator of a config.  Raises ConfigError if the environment variable has no token."""
    return SimulevalServiceTranslator(config, Service(config.url, config.timeout, token=token_from(config.token_env)))
