"""A trained Transformer of ours that reads whole texts, made simultaneous by a policy of `smt.policies`.

    translator: {name: prefix, model: es-en, policy: local-agreement, n: 2}

Unlike `waitk`, which goes on from what it wrote, the model translates every prefix from the start.  So it may have a
bidirectional encoder, and `policy: wait-k` is a wait-k that it was never trained for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from smt.bundle import folder_fingerprint, load_model, model_folder
from smt.decode import decode_batch
from smt.neural import VERSION as DECODING
from smt.policies import PolicyName, PolicyTranslator, Remembered, parse_policy
from smt.waitk import FULL


@dataclass(frozen=True, slots=True)
class PrefixConfig:
    """Which model and the policy around it."""

    model: str  # a bundled model (es-en, pl-en) or the folder of a trained one
    policy: PolicyName = "wait-k"  # when to write what: see smt/policies.py
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full"
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back

    def __post_init__(self) -> None:
        parse_policy(self.policy, self.k, self.n)


class NeuralSystem:
    """Greedy full-input translation with a model of ours."""

    def __init__(self, folder: Path) -> None:
        self.model, self.vocabulary, self.about = load_model(folder)
        self._fingerprint = hashlib.sha256(f"{DECODING} {folder_fingerprint(folder)}".encode()).hexdigest()

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words of each text."""
        written = decode_batch(self.model, self.vocabulary, [text.split() for text in texts], FULL)
        return [tuple(word.token for word in words) for words in written]

    def fingerprint(self) -> str:
        """Hash of the model's files and of the decoder's version."""
        return self._fingerprint


@lru_cache(maxsize=2)
def system(folder: Path, digest: str) -> Remembered:
    """One system per model (`digest` is of its files), so that runs with different policies share its memory."""
    return Remembered(NeuralSystem(folder))


def build(config: PrefixConfig) -> PolicyTranslator:
    """The translator of a config."""
    folder = model_folder(config.model)
    shared = system(folder, folder_fingerprint(folder))
    return PolicyTranslator(shared, parse_policy(config.policy, config.k, config.n))
