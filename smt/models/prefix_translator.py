"""A trained Transformer of ours that reads whole texts, made simultaneous by a policy of `smt.policies.prefixes`.

    translator: {name: prefix, model: es-en, policy: local-agreement, n: 2}

The model translates every prefix from the start, and `policy: wait-k` takes word j of the newest translation behind the
words written before, which that translation need not begin with.  Test-time wait-k as Ma et al. 2019 define it, where
the model continues the words it wrote, is `waitk` with the same model; it runs models trained on complete sentences
at any k, also those with a bidirectional encoder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from smt.models.beam import VERSION as SEARCH
from smt.models.beam import Beam
from smt.models.bundle import folder_fingerprint, load_model, model_folder
from smt.models.transformer_stepper import TransformerWriter
from smt.models.waitk_translator import VERSION as DECODING
from smt.models.writing import WholeTexts
from smt.policies.chosen import PolicyConfig, policy_of
from smt.policies.prefixes import PolicyTranslator, Remembered
from sqa.data.languages import pair_of


@dataclass(frozen=True, slots=True)
class PrefixConfig:
    """Which model and the policy around it."""

    model: str  # a bundled model (es-en, pl-en) or the folder of a trained one
    policy: PolicyConfig = "wait-k"  # when to write what: see smt/policies/prefixes.py
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full"
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back
    beam: int = 1  # hypotheses kept while a prefix is translated, see smt/models/beam.py; 1 = greedy

    def __post_init__(self) -> None:
        policy_of(self)
        Beam(self.beam)


@lru_cache(maxsize=2)
def system(folder: Path, digest: str, beam: int = 1) -> Remembered:
    """One system per model (`digest` is of its files) and beam: runs with different policies share its memory."""
    model, vocabulary, about = load_model(folder)
    model.accelerate("float32")
    writer = TransformerWriter(model, vocabulary)
    options = f" beam {SEARCH} {beam}" * (beam > 1)  # greedy is not named: older results stay valid
    fingerprint = hashlib.sha256(f"{DECODING}{options} {digest}".encode()).hexdigest()
    return Remembered(WholeTexts(lambda: writer, Beam(beam), fingerprint, pair_of(about)))


def build(config: PrefixConfig) -> PolicyTranslator:
    """The translator of a config."""
    folder = model_folder(config.model)
    shared = system(folder, folder_fingerprint(folder), config.beam)
    return PolicyTranslator(shared, policy_of(config))
