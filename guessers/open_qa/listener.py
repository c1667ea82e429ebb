"""A listener, which answers a question about the source from the translation so far, after each word.

    guesser: {name: listener}        # Gemma 3 270M of the extra lm reads (guessers/open_qa/lm_reader.py)
    guesser: {name: listener, endpoint: {base_url: "http://localhost:8000/v1", model: m}}

The reader gets the translation so far as its only passage.  An empty reply gives no guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from guessers.open_qa.lm_reader import LmReader, LmReaderConfig
from guessers.open_qa.passages import Passage
from sqa.core.schema import File
from sqa.core.types import Guess
from sqa.files.devices import Device, Dtype
from sqa.files.store import digest
from sqa.net.endpoint import EndpointConfig

VERSION = 2  # increase when answers change


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Options of `guesser: {name: listener, ...}`."""

    base: Annotated[File, "model of the extra lm, or a folder, a .gguf file or a hub name"] = "gemma3-270m"
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "auto = bfloat16 if the device supports it, else float32"] = "auto"
    endpoint: Annotated[EndpointConfig | None, "server with a base model, which is asked in place of `base`"] = None
    ARITHMETIC: ClassVar = LmReaderConfig.ARITHMETIC


class Listener:
    """Guesser that answers questions about the source and names no pages."""

    def __init__(self, config: ListenerConfig) -> None:
        c = config
        self._reader = LmReader(LmReaderConfig(base=c.base, device=c.device, dtype=c.dtype, endpoint=c.endpoint))

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return no guess for any text, because a listener knows no pages."""
        return [[] for _ in texts]

    def answer(self, asked: str, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return at most one guess for each text; equal texts are read once."""
        different = list(dict.fromkeys(texts))
        passages = [[Passage("", "", text)] if text else [] for text in different]
        answer_of = dict(zip(different, self._reader.answers([asked] * len(different), passages), strict=True))
        return [[Guess(answer_of[text], 1.0)][:n] if answer_of[text].strip() else [] for text in texts]

    def fingerprint(self) -> str:
        """Return a digest of the reader and the version of this code."""
        return digest(["listener", VERSION, self._reader.fingerprint()])


def build(config: ListenerConfig) -> Listener:
    """Build the guesser of a config."""
    return Listener(config)
