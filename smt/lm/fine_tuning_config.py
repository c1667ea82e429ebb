"""The config of a fine-tuning: `sqa train smt CONFIG` with the key `base`."""

from dataclasses import dataclass, field

from smt.training.config import CorpusConfig
from sqa.core.errors import BelowOne, Count, Positive, Share, Whole, checked
from sqa.core.k import parse_k


@dataclass(frozen=True, slots=True)
@checked
class LmTrainConfig:
    """The optimiser's side."""

    steps: Count = 1200  # optimiser steps in all
    batch_pieces: Count = 1600  # source and target pieces per batch, padding included
    k: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 9, 12, 15)  # source words read first; one is drawn for every pair
    full_share: Share = 0.5  # chance that a pair is read in full instead
    bidirectional_share: Share = 0.0  # chance that the source of a pair read in full looks at itself in both directions
    rank: Count = 16  # of the adapter
    scale: Positive = 2.0  # factor of the adapter's product
    learning_rate: Positive = 8e-4  # the peak, reached after `warmup` steps
    warmup: Whole = 20  # steps of linear rise
    cooldown: Whole = 300  # last steps, falling linearly to zero
    copy_weight: Positive = 1.0  # weight of names and numbers that the source has, too; other words: 1
    label_smoothing: BelowOne = 0.0
    clip: Positive = 1.0  # gradient norm
    checkpoint_every: Count = 25  # steps
    evaluate_every: Whole = 200  # steps between BLEU measurements on the development set; 0 = never
    evaluate_sentences: Count = 60
    compile: bool = True  # compile the layers (needs a C++ compiler): a fifth faster
    threads: Whole = 0  # CPU threads; 0 = torch's choice
    seed: Whole = 0

    def problems(self) -> list[str]:
        """Beside the bounds."""
        for k in self.k:
            parse_k(k)
        return [] if self.k or self.full_share == 1 else [f"full_share: must be 1 without k, got {self.full_share}"]


@dataclass(frozen=True, slots=True)
@checked
class LmConfig:
    """One fine-tuning."""

    name: str  # results go to runs/smt/<name>
    base: str  # the language model: packaged name, folder, .gguf file, hub name
    corpus: CorpusConfig  # the parallel text; its vocabulary, aligner and lexicon are not used
    reverse: bool = False  # from English into the other language
    full_weight_words: Count = 10  # a shorter pair is used less often: n words count n / this
    longest: Count = 110  # pieces of a side at most
    output_pieces: Count = 36_000  # most frequent pieces of the targets, to learn; letters and bytes always are
    start: str | None = None  # an adapter (bundled or a folder) to begin with
    glosses: str | None = None  # packed phrase-based model that glosses rare source words: statistical/glosses.py
    development: str = "flores-dev"  # part whose first sentences measure BLEU while training
    train: LmTrainConfig = field(default_factory=LmTrainConfig)

    @property
    def direction(self) -> tuple[str, str]:
        """ISO 639-1 codes of source and target."""
        other, english = self.corpus.pair.split("-")
        return (english, other) if self.reverse else (other, english)
