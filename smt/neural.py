"""The trained wait-k Transformer as a translator: `translator: {name: waitk, model: es-en, k: 6}`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from smt.bundle import folder_fingerprint, load_model, model_folder
from smt.choose import Chooser
from smt.decode import decode_batch, decode_stream
from smt.waitk import FULL, parse_k
from sqa.errors import ConfigError
from sqa.types import Emission, Question

VERSION = 2  # raise when decoding changes its output


@dataclass(frozen=True, slots=True)
class WaitKConfig:
    """Which model and how far behind the reader it writes."""

    model: str  # a bundled model (es-en, pl-en) or the folder of a trained one
    k: int | str = "full"  # source WORDS read before the first target word, or "full" = the whole sentence

    emission_rate: float = 1.0  # target words written per source word read, 0.5 to 2 (the paper: 0.97)

    def __post_init__(self) -> None:
        parse_k(self.k)
        if not 0.5 <= self.emission_rate <= 2:
            raise ConfigError(f"emission_rate: must be in [0.5, 2], got {self.emission_rate}")


class WaitKTranslator:
    """Greedy wait-k translation; streaming and batched give the same words and the same g."""

    def __init__(self, folder: Path, k: int | str, emission_rate: float = 1.0) -> None:
        self.model, self.vocabulary, self.about = load_model(folder)
        self.k, self.emission_rate = parse_k(k), emission_rate
        if self.model.config.encoder == "bidirectional" and self.k != FULL:
            raise ConfigError(f"translator.k: {folder} reads whole sentences only (bidirectional encoder), got {k}")
        self.chooser = Chooser(self.model, self.vocabulary)
        rules = f"{VERSION} {self.k} {emission_rate} {folder_fingerprint(folder)}"
        self._fingerprint = hashlib.sha256(rules.encode()).hexdigest()

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Words of one sentence, written while `source` is read."""
        return decode_stream(self.model, self.vocabulary, source, self.k, self.chooser, self.emission_rate)

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Emissions of whole questions."""
        sentences = [sentence for question in questions for sentence in question.sentences]
        written = iter(decode_batch(self.model, self.vocabulary, sentences, self.k, self.emission_rate))
        return [
            [
                Emission(i, word.token, word.g, word.ended)
                for i in range(len(question.sentences))
                for word in next(written)
            ]
            for question in questions
        ]

    def fingerprint(self) -> str:
        """Hash of everything that decides the output."""
        return self._fingerprint


def build(config: WaitKConfig) -> WaitKTranslator:
    """The translator of a config."""
    return WaitKTranslator(model_folder(config.model), config.k, config.emission_rate)
