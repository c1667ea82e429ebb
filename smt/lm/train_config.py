"""The config of a fine-tuning: `sqa train smt CONFIG` with the key `base`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from smt.policies.waitk import parse_k
from smt.training.config import CorpusConfig
from sqa.core.errors import ConfigError, no_shares, too_small
from sqa.run.config import folder_name


@dataclass(frozen=True, slots=True)
class LmTrainConfig:
    """The optimiser's side."""

    steps: int = 1200  # optimiser steps in all
    batch_pieces: int = 1600  # source and target pieces per batch, padding included
    k: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 9, 12, 15)  # source words read first; one is drawn for every pair
    full_share: float = 0.5  # chance that a pair is read in full instead
    bidirectional_share: float = 0.0  # chance that the source of a pair read in full looks at itself in both directions
    rank: int = 16  # of the adapter
    scale: float = 2.0  # factor of the adapter's product
    learning_rate: float = 8e-4  # the peak, reached after `warmup` steps
    warmup: int = 20  # steps of linear rise
    cooldown: int = 300  # last steps, falling linearly to zero
    copy_weight: float = 1.0  # loss of names and numbers that the source spells alike, beside other words' 1
    label_smoothing: float = 0.0
    clip: float = 1.0  # gradient norm
    checkpoint_every: int = 25  # steps
    evaluate_every: int = 200  # steps between BLEU measurements on the development set; 0 = never
    evaluate_sentences: int = 60
    compile: bool = True  # compile the layers (needs a C++ compiler): a fifth faster
    threads: int = 0  # CPU threads; 0 = torch's choice
    seed: int = 0

    def __post_init__(self) -> None:
        wrong = too_small(
            self,
            "train.",
            steps=1,
            batch_pieces=1,
            rank=1,
            checkpoint_every=1,
            evaluate_sentences=1,
            warmup=0,
            cooldown=0,
            evaluate_every=0,
            threads=0,
            seed=0,
        )
        wrong += [
            f"train.{name}: must be > 0 and finite, got {getattr(self, name)}"
            for name in ("learning_rate", "scale", "clip", "copy_weight")
            if not 0 < getattr(self, name) < math.inf
        ]
        if not 0 <= self.full_share <= 1 or (self.full_share < 1 and not self.k):
            wrong.append(f"train.full_share: must be in [0, 1], and 1 without k, got {self.full_share}")
        if not 0 <= self.bidirectional_share <= 1:
            wrong.append(f"train.bidirectional_share: must be in [0, 1], got {self.bidirectional_share}")
        wrong += no_shares(self, "label_smoothing", at="train.")
        if wrong:
            raise ConfigError(wrong)
        for k in self.k:
            parse_k(k)


@dataclass(frozen=True, slots=True)
class LmConfig:
    """One fine-tuning."""

    name: str  # results go to runs/smt/<name>
    base: str  # the language model: packaged name, folder, .gguf file, hub name
    corpus: CorpusConfig  # the parallel text; its vocabulary, aligner and lexicon are not used
    reverse: bool = False  # from English into the other language
    full_weight_words: int = 10  # a shorter pair is used less often: n words count n / this
    longest: int = 110  # pieces of a side at most
    output_pieces: int = 36_000  # most frequent pieces of the targets that can be chosen; letters and bytes always can
    start: str | None = None  # an adapter (bundled or a folder) to begin with
    development: str = "flores-dev"  # part whose first sentences measure BLEU while training
    train: LmTrainConfig = field(default_factory=LmTrainConfig)

    def __post_init__(self) -> None:
        wrong = folder_name(self.name) + too_small(self, full_weight_words=1, longest=1, output_pieces=1)
        if wrong:
            raise ConfigError(wrong)

    @property
    def direction(self) -> tuple[str, str]:
        """ISO 639-1 codes of source and target."""
        other, english = self.corpus.pair.split("-")
        return (english, other) if self.reverse else (other, english)
