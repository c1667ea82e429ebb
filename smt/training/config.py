"""The config of a training run: corpus, model and optimiser.  configs/smt_es_en.yaml explains each key."""

import math
import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from smt.models.transformer import ModelConfig, default_lexicon
from smt.policies.waitk import FULL
from smt.training.clean import CleanConfig
from smt.training.synthetic import MadeConfig
from sqa.core import BelowOne, ConfigError, Count, File, NotNegative, Positive, Whole, checked, parse_k
from sqa.files import Arithmetic, Device, Dtype
from sqa.pipeline import folder_name

PAIRS = ("es-en", "pl-en")  # pairs with project data


@dataclass(frozen=True, slots=True)
@checked
class CorpusConfig:
    """The training data of the model."""

    pair: Annotated[str, 'es-en or pl-en; for your own pairs any "source-target" (ISO 639), und = unknown'] = "und-en"
    train: Annotated[File | None, "your own pairs: TSV with source, target and optionally corpus"] = None
    development: Annotated[File | None, "TSV of your own pairs for measuring BLEU; held out of training"] = None
    weights: Annotated[dict[str, float], "corpus -> number of times that each of its pairs is used per epoch"] = field(
        default_factory=dict
    )
    default_weight: Annotated[NotNegative, "weight of corpora that `weights` does not name"] = 0.1
    made: Annotated[tuple[MadeConfig, ...], "corpora in which a translator made one side"] = ()
    lexicon_weight: Annotated[NotNegative, "weight of bilingual lexicons and CLDR names"] = 1.0
    vocabulary_size: Annotated[
        int, Meta(ge=300, le=65535), "number of pieces of both languages, including 256 bytes"
    ] = 8000
    vocabulary_kind: Annotated[Literal["unigram", "bpe"], "SentencePiece's algorithm"] = "unigram"
    aligned_sentences: Annotated[Whole, "number of sentences for the aligner, from which the lexicon is made"] = 120_000
    lexicon_width: Annotated[Whole, "maximum translations per source piece"] = field(default_factory=default_lexicon)
    seed: Whole = 0
    clean: CleanConfig = field(default_factory=CleanConfig)

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        unusable = {name: weight for name, weight in self.weights.items() if not 0 <= weight < math.inf}
        wrong = [f"weights.{name}: must be >= 0, got {weight}" for name, weight in unusable.items()]
        if self.train is None and self.pair not in PAIRS:
            pairs = " or ".join(map(repr, PAIRS))
            wrong.append(f"corpus.pair: expected {pairs}, or your own pairs (`train: pairs.tsv`), got {self.pair!r}")
        if not re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", self.pair):
            wrong.append(f"corpus.pair: expected two languages, such as 'fr-en', got {self.pair!r}")
        if self.train is None and self.development is not None:
            wrong.append("corpus.development: belongs to your own pairs; also name them: `train: pairs.tsv`")
        return wrong


@dataclass(frozen=True, slots=True)
@checked
class TrainConfig:
    """Settings of the optimiser."""

    steps: Annotated[Count, "total number of optimiser steps"] = 4000
    batch_pieces: Annotated[Count, "target pieces per batch, padding included"] = 2000
    accumulate: Annotated[Count, "batches per optimiser step"] = 1
    k: Annotated[tuple[int | str, ...], "one: single-k; several: multi-path, one per batch"] = (3, 6, 9, 12, 15, "full")
    k_weights: Annotated[tuple[float, ...], "relative probability of each k, in the same order; empty = equal"] = ()
    emission_rate: Annotated[float, Meta(ge=0.5, le=1), "target words per source word, see `Schedule`"] = 1.0
    learning_rate: Annotated[NotNegative, "peak learning rate, reached after `warmup` steps"] = 1.5e-3
    warmup: Annotated[Whole, "steps of the linear increase"] = 300
    schedule: Annotated[
        Literal["inverse_sqrt", "constant"], "learning rate between the increase and the final decrease"
    ] = "inverse_sqrt"
    cooldown: Annotated[Whole, "number of final steps, in which the rate falls linearly to zero"] = 500
    label_smoothing: BelowOne = 0.1
    alignment_weight: Annotated[NotNegative, "weight of the guided-alignment loss"] = 0.3
    clip: Annotated[Positive, "maximum norm of the gradient"] = 1.0
    weight_decay: NotNegative = 0.0
    checkpoint_every: Annotated[Count, "steps between checkpoints"] = 250
    keep: Annotated[Count, "number of checkpoints that are kept and averaged into the final model"] = 4
    evaluate_every: Annotated[Whole, "steps between BLEU measurements on the development set; 0 = never"] = 500
    evaluate_sentences: Count = 200
    evaluate_k: tuple[int | str, ...] = (6, "full")
    compile: Annotated[bool, "compile the output layer and loss; a tenth faster, needs a C++ compiler"] = False
    device: Annotated[Device, "auto = a GPU if there is one"] = "auto"
    dtype: Annotated[Dtype, "element type of products; auto = bfloat16 if supported"] = "float32"
    threads: Annotated[Whole, "CPU threads; 0 = torch's choice"] = 0
    seed: Whole = 0
    ARITHMETIC: ClassVar = Arithmetic(("float32", "bfloat16"), ("bfloat16", "float32"))

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        for k in (*self.k, *self.evaluate_k):
            parse_k(k)
        wrong = [] if self.k else ["k: at least one value is needed"]
        if self.k_weights and len(self.k_weights) != len(self.k):
            wrong.append(f"k_weights: expected {len(self.k)} values, one per k, got {len(self.k_weights)}")
        if self.k_weights and not (all(0 <= w < math.inf for w in self.k_weights) and sum(self.k_weights) > 0):
            wrong.append(f"k_weights: must be >= 0, finite and not all 0, got {list(self.k_weights)}")
        return wrong


@dataclass(frozen=True, slots=True)
class SmtConfig:
    """The config of one training run."""

    name: Annotated[str, "results are written to runs/smt/<name>"]
    corpus: CorpusConfig
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    development: Annotated[str, "part whose first sentences are used to measure BLEU during training"] = "flores-dev"
    start: Annotated[str | None, "bundled model or folder with the initial vocabulary and weights"] = None
    data: Annotated[
        str | None, "another training run below --runs whose prepared data are used; null = prepare the data"
    ] = None
    full_encoder: Annotated[Literal["causal", "bidirectional"], "encoder of a sweep's full-input runs"] = "causal"

    def __post_init__(self) -> None:
        if self.corpus.train is not None and self.corpus.development is None and self.train.evaluate_every:
            raise ConfigError("corpus.development: needed to measure BLEU; name a file, or train.evaluate_every: 0")
        if self.data is not None and folder_name(self.data):
            raise ConfigError(folder_name(self.data, "data"))
        if self.model.vocabulary != self.corpus.vocabulary_size:
            expected = f"must equal corpus.vocabulary_size {self.corpus.vocabulary_size}"
            raise ConfigError(f"model.vocabulary: {expected}, got {self.model.vocabulary}")
        if self.model.encoder == "bidirectional" and any(parse_k(k) != FULL for k in self.train.k):
            raise ConfigError("train.k: a bidirectional encoder needs the whole source, so k must be 'full'")
