"""A trained Transformer of ours as a wait-k translator: `translator: {name: waitk, model: es-en, k: 6}`.

It goes on from what it wrote, whatever it was trained for: a model trained on complete sentences only is run by
test-time wait-k (Ma et al. 2019), also with a bidirectional encoder, which then encodes what was read after every READ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from smt.models import copying
from smt.models.beam import GREEDY, Beam, search_batch, search_stream
from smt.models.beam import VERSION as SEARCH
from smt.models.bundle import folder_fingerprint, load_model, model_folder
from smt.models.decode import decode_batch, decode_stream
from smt.models.stepper import Written
from smt.models.transformer_stepper import TransformerWriter
from smt.policies.waitk import Schedule, Unit, parse_k
from sqa.core.types import Emission, Question
from sqa.data.languages import pair_of

VERSION = 2  # raise when decoding changes its output


@dataclass(frozen=True, slots=True)
class WaitKConfig:
    """Which model and how far behind the reader it writes."""

    model: str  # a bundled model (es-en, pl-en) or the folder of a trained one
    k: int | str = "full"  # source words (or pieces) read before the first target word, or "full" = the whole sentence
    emission_rate: float = 1.0  # target words written per source word read, 0.5 to 2 (the paper: 0.97)
    unit: Unit = "word"  # what k and the rate count; piece = as fairseq counts, see smt/models/decode.py
    beam: int = 1  # hypotheses searched before a word is published, see smt/models/beam.py; 1 = greedy
    look_ahead: int = 2  # with a beam: words of a hypothesis while the source goes on; the first is published
    copy_bonus: float = 0.0  # nats for pieces that spell a name of the source, see smt/models/copying.py

    def __post_init__(self) -> None:
        self.schedule()
        Beam(self.beam, self.look_ahead)
        copying.check(self.copy_bonus, self.beam)

    def schedule(self) -> Schedule:
        """When to READ."""
        return Schedule(parse_k(self.k), self.emission_rate, self.unit)


class WaitKTranslator:
    """Wait-k translation; streaming and batched give the same words and the same g."""

    def __init__(self, folder: Path, schedule: Schedule, beam: Beam = GREEDY, copy_bonus: float = 0.0) -> None:
        self.model, self.vocabulary, self.about = load_model(folder)
        self.schedule, self.beam = schedule, beam
        self.languages = pair_of(self.about)
        source = self.languages[0] if self.languages else None
        self.writer = TransformerWriter(self.model, self.vocabulary, copy_bonus, source or "")
        # Options at their usual values are not named: results stored before there were any stay valid.
        options = f" {schedule.unit}" * (schedule.unit != "word") + f" {SEARCH} {beam!r}" * (beam.n > 1)
        if copy_bonus:
            options += f" copy {copying.VERSION} {copy_bonus}"
        rules = f"{VERSION} {schedule.k} {schedule.rate}{options} {folder_fingerprint(folder)}"
        self._fingerprint = hashlib.sha256(rules.encode()).hexdigest()

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Words of one sentence, written while `source` is read."""
        if self.beam.n > 1:
            return search_stream(self.writer, source, self.schedule, self.beam)
        return decode_stream(self.writer, source, self.schedule)

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Emissions of whole questions."""
        sentences = [sentence for question in questions for sentence in question.sentences]
        written = iter(self._written(sentences))
        return [
            [
                Emission(i, word.token, word.g, word.ended)
                for i in range(len(question.sentences))
                for word in next(written)
            ]
            for question in questions
        ]

    def _written(self, sentences: Sequence[Sequence[str]]) -> list[list[Written]]:
        if self.beam.n > 1:
            return search_batch(self.writer, sentences, self.schedule, self.beam)
        return decode_batch(self.writer, sentences, self.schedule)

    def fingerprint(self) -> str:
        """Hash of everything that decides the output."""
        return self._fingerprint


def build(config: WaitKConfig) -> WaitKTranslator:
    """The translator of a config."""
    beam = Beam(config.beam, config.look_ahead)
    return WaitKTranslator(model_folder(config.model), config.schedule(), beam, config.copy_bonus)
