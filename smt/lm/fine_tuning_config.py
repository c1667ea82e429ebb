"""The config of a fine-tuning: `sqa train smt CONFIG` with the key `base`."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from smt.training.config import CorpusConfig
from sqa.core.k import parse_k
from sqa.core.schema import BelowOne, Count, Positive, Share, Whole, checked
from sqa.files.devices import Arithmetic, Device, Dtype


@dataclass(frozen=True, slots=True)
@checked
class LmTrainConfig:
    """The optimiser's settings."""

    steps: Annotated[Count, "optimiser steps in all"] = 1200
    batch_pieces: Annotated[Count, "source and target pieces per batch, padding included"] = 1600
    k: Annotated[tuple[int, ...], "source words read first, drawn for every pair"] = (2, 3, 4, 5, 6, 7, 9, 12, 15)
    full_share: Annotated[Share, "chance that a pair is read in full instead"] = 0.5
    bidirectional_share: Annotated[Share, "chance that a source read in full looks at itself in both directions"] = 0.0
    rank: Annotated[Count, "of the adapter"] = 16
    scale: Annotated[Positive, "factor of the adapter's product"] = 2.0
    learning_rate: Annotated[Positive, "the peak, reached after `warmup` steps"] = 8e-4
    warmup: Annotated[Whole, "steps of linear rise"] = 20
    cooldown: Annotated[Whole, "last steps, falling linearly to zero"] = 300
    copy_weight: Annotated[Positive, "weight of names and numbers that the source has, too; other words: 1"] = 1.0
    label_smoothing: BelowOne = 0.0
    clip: Annotated[Positive, "gradient norm"] = 1.0
    checkpoint_every: Annotated[Count, "steps"] = 25
    evaluate_every: Annotated[Whole, "steps between BLEU measurements on the development set; 0 = never"] = 200
    evaluate_sentences: Count = 60
    compile: Annotated[bool, "compile the layers (needs a C++ compiler): a fifth faster"] = True
    device: Annotated[Device, "auto = a GPU if there is one"] = "auto"
    dtype: Annotated[Dtype, "of the weights that stay; auto = bfloat16 where the device multiplies it"] = "bfloat16"
    threads: Annotated[Whole, "CPU threads; 0 = torch's choice"] = 0
    seed: Whole = 0
    ARITHMETIC: ClassVar = Arithmetic(("float32", "bfloat16"), ("bfloat16", "float32"))

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        for k in self.k:
            parse_k(k)
        return [] if self.k or self.full_share == 1 else [f"full_share: must be 1 without k, got {self.full_share}"]


@dataclass(frozen=True, slots=True)
@checked
class LmConfig:
    """The config of one fine-tuning."""

    name: Annotated[str, "results go to runs/smt/<name>"]
    base: Annotated[str, "the language model: packaged name, folder, .gguf file, hub name"]
    corpus: Annotated[CorpusConfig, "the parallel text; its vocabulary, aligner and lexicon are not used"]
    reverse: Annotated[bool, "from English into the other language"] = False
    full_weight_words: Annotated[Count, "a shorter pair is used less often: n words count n / this"] = 10
    longest: Annotated[Count, "pieces of a side at most"] = 110
    output_pieces: Annotated[Count, "most frequent target pieces to learn, beside letters and bytes"] = 36_000
    start: Annotated[str | None, "an adapter (bundled or a folder) to begin with"] = None
    glosses: Annotated[str | None, "phrase-based model that glosses rare source words: statistical/glosses.py"] = None
    development: Annotated[str, "part whose first sentences measure BLEU while training"] = "flores-dev"
    train: LmTrainConfig = field(default_factory=LmTrainConfig)

    @property
    def direction(self) -> tuple[str, str]:
        """Return the ISO 639-1 codes of source and target."""
        other, english = self.corpus.pair.split("-")
        return (english, other) if self.reverse else (other, english)
