"""A trained Transformer of ours as a wait-k translator: `translator: {name: waitk, model: es-en, k: 6}`.

It continues its own translation.  A model trained on complete sentences only is run by test-time wait-k (Ma et al.
2019); a bidirectional encoder then encodes the words read anew after every READ.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from smt.models import copying
from smt.models.beam import VERSION as SEARCH
from smt.models.beam import Beam
from smt.models.bundle import folder_fingerprint, load_model, model_folder
from smt.models.int8 import Precision
from smt.models.transformer_stepper import TransformerWriter
from smt.models.writing import WaitKTranslator
from smt.policies.waitk import Schedule, Unit, parse_k
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
    look_ahead: int = 2  # with a beam: words of a hypothesis while the source continues; the first is published
    precision: Precision = "float32"  # of the arithmetic; int8 is faster and may write other words
    copy_bonus: float = 0.0  # nats for pieces that spell a name of the source, see smt/models/copying.py

    def __post_init__(self) -> None:
        self.schedule()
        Beam(self.beam, self.look_ahead)
        copying.check(self.copy_bonus, self.beam)

    def schedule(self) -> Schedule:
        """When to READ."""
        return Schedule(parse_k(self.k), self.emission_rate, self.unit)


def build(config: WaitKConfig) -> WaitKTranslator:
    """The translator of a config."""
    folder = model_folder(config.model)
    model, vocabulary, about = load_model(folder)
    model.accelerate(config.precision)
    languages = pair_of(about)
    writer = TransformerWriter(model, vocabulary, config.copy_bonus, (languages and languages[0]) or "")
    schedule, beam = config.schedule(), Beam(config.beam, config.look_ahead)
    # Options at their usual values are not named: results stored before there were any stay valid.
    options = f" {schedule.unit}" * (schedule.unit != "word") + f" {SEARCH} {beam!r}" * (beam.n > 1)
    if config.precision != "float32":
        options += f" {config.precision}"
    if config.copy_bonus:
        options += f" copy {copying.VERSION} {config.copy_bonus}"
    rules = f"{VERSION} {schedule.k} {schedule.rate}{options} {folder_fingerprint(folder)}"
    return WaitKTranslator(lambda: writer, schedule, beam, hashlib.sha256(rules.encode()).hexdigest(), languages)
