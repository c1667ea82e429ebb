"""The config of a fine-tuning run: `sqa train smt CONFIG` with the key `base`."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from smt.training.config import CorpusConfig
from sqa.core import BelowOne, Count, Positive, Share, Whole, checked, parse_k
from sqa.files import Arithmetic, Device, Dtype


@dataclass(frozen=True, slots=True)
@checked
class LmTrainConfig:
    """Settings of the optimiser."""

    steps: Annotated[Count, "total number of optimiser steps"] = 1200
    batch_pieces: Annotated[Count, "source and target pieces per batch, padding included"] = 1600
    k: Annotated[tuple[int, ...], "values of k, one of which is drawn for every pair"] = (2, 3, 4, 5, 6, 7, 9, 12, 15)
    full_share: Annotated[Share, "probability that a pair is read in full instead"] = 0.5
    bidirectional_share: Annotated[Share, "probability that a fully read source attends in both directions"] = 0.0
    rank: Annotated[Count, "rank of the adapter"] = 16
    scale: Annotated[Positive, "factor of the product of the adapter's matrices"] = 2.0
    learning_rate: Annotated[Positive, "peak learning rate, reached after `warmup` steps"] = 8e-4
    warmup: Annotated[Whole, "steps of the linear increase"] = 20
    cooldown: Annotated[Whole, "number of final steps, in which the rate falls linearly to zero"] = 300
    label_smoothing: BelowOne = 0.0
    clip: Annotated[Positive, "maximum norm of the gradient"] = 1.0
    checkpoint_every: Annotated[Count, "steps between checkpoints"] = 25
    evaluate_every: Annotated[Whole, "steps between BLEU measurements on the development set; 0 = never"] = 200
    evaluate_sentences: Count = 60
    compile: Annotated[bool, "compile the layers; a fifth faster, needs a C++ compiler"] = True
    device: Annotated[Device, "auto = a GPU if there is one"] = "auto"
    dtype: Annotated[Dtype, "element type of frozen weights; auto = bfloat16 if supported"] = "bfloat16"
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
    """The config of one fine-tuning run."""

    name: Annotated[str, "results are written to runs/smt/<name>"]
    base: Annotated[str, "the language model: packaged name, folder, .gguf file, hub name"]
    corpus: Annotated[CorpusConfig, "the parallel text; its vocabulary, aligner and lexicon are not used"]
    reverse: Annotated[bool, "whether to translate from English into the other language"] = False
    full_weight_words: Annotated[Count, "a shorter pair is used less often: n words have the weight n / this"] = 10
    longest: Annotated[Count, "maximum number of pieces per side"] = 110
    output_pieces: Annotated[Count, "number of frequent target pieces to learn, in addition to letters and bytes"] = (
        36_000
    )
    glosses: Annotated[str | None, "phrase-based model that glosses rare source words: statistical/lexicon.py"] = None
    development: Annotated[str, "part whose first sentences are used to measure BLEU during training"] = "flores-dev"
    train: LmTrainConfig = field(default_factory=LmTrainConfig)

    @property
    def direction(self) -> tuple[str, str]:
        """Return the ISO 639-1 codes of source and target."""
        other, english = self.corpus.pair.split("-")
        return (english, other) if self.reverse else (other, english)
