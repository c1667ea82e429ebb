"""An agent that SimulEval 1.1 serves (`simuleval --standalone`), or anything that speaks so, as a translator.

    translator: {name: simuleval_service, url: "http://localhost:12321"}

It is driven as SimulEval's remote evaluator drives it: a reset before each sentence, then a source word in and a
segment out until that is `finished`, empty segments after the last word.  Where the source knows its length, the end is
announced with the last word, as SimulEval does (see agent.py); the package itself is not needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqa.core.errors import Positive, checked
from sqa.core.types import Emission, Question
from sqa.files.store import digest
from sqa.net.client import Service, token_from, url_problems
from sqa_services.simuleval.agent import driven, emissions_of

VERSION = 1  # raise when the same service would be driven otherwise


@dataclass(frozen=True, slots=True)
@checked
class SimulevalServiceConfig:
    """Keys of `translator: {name: simuleval_service, ...}`."""

    url: str = "http://localhost:12321"  # of the service
    label: str = ""  # any name for what answers; change it with the agent behind the address: results are kept
    timeout: Positive = 600.0  # seconds for one reply
    token_env: str | None = None  # environment variable with a bearer token; null = none is sent

    def problems(self) -> list[str]:
        """List the problems of the address."""
        return url_problems(self.url)


class SimulevalServiceTranslator:
    """Drive one service through sentence after sentence."""

    def __init__(self, config: SimulevalServiceConfig, service: Service) -> None:
        self._config, self._service = config, service

    def fingerprint(self) -> str:
        """Hash of the address and the label: what answers there only the user knows."""
        return digest(["simuleval_service", VERSION, self._config.url, self._config.label])

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Yield the words of one sentence; every segment pulls a word until the end is announced."""
        self._service.text("POST", "/reset")
        return driven(source, self._pushpop, lambda problem: self._service.problem("GET", "/output", problem))

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions: sentence by sentence, every source knows its length."""
        return emissions_of(self.translate, questions)

    def _pushpop(self, index: int, word: str | None, ended: bool) -> tuple[list[str], bool]:
        """Return the words of the returned segment, and whether it is the last."""
        self._service.text("PUT", "/input", _segment(index, word, ended))
        reply = self._service.json("GET", "/output")
        segment = reply if isinstance(reply, dict) else {}
        content, finished, empty = segment.get("content"), segment.get("finished"), segment.get("is_empty", False)
        if isinstance(finished, bool) and (empty is True or isinstance(content, str)):
            return [] if empty else str(content).split(), finished
        expected = "a segment of text with content, finished and is_empty was expected"
        raise self._service.problem("GET", "/output", f"{expected}, it said {str(reply)[:80]!r}")


def _segment(index: int, word: str | None, finished: bool) -> dict[str, Any]:
    """Return a segment of SimulEval's: a word, or an empty one."""
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
    """Return the translator of a config.  Raises ConfigError if the variable has no token."""
    return SimulevalServiceTranslator(config, Service(config.url, config.timeout, token=token_from(config.token_env)))
