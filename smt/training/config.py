"""The config of a training: its corpus, its model, its optimiser.  configs/smt_es_en.yaml explains each key."""

import math
import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from smt.models.transformer import ModelConfig, default_lexicon
from smt.policies.waitk import FULL
from smt.training.clean import CleanConfig
from smt.training.made import MadeConfig
from sqa.core.errors import BelowOne, Bound, ConfigError, Count, NotNegative, Positive, Whole, checked
from sqa.core.k import parse_k
from sqa.core.paths import File
from sqa.pipeline.config import folder_name

PAIRS = ("es-en", "pl-en")  # that the project has text for


@dataclass(frozen=True, slots=True)
@checked
class CorpusConfig:
    """What the model learns from."""

    pair: str = "und-en"  # es-en or pl-en; of your own pairs any "source-target" (ISO 639), und = not said
    train: File | None = None  # your own pairs in place of the project's: TSV source, target and, if you like, corpus
    development: File | None = None  # your own pairs that measure BLEU, TSV; kept out of training
    weights: dict[str, float] = field(default_factory=dict)  # corpus -> how often each of its pairs is used per epoch
    default_weight: NotNegative = 0.1  # for corpora not named in `weights`
    back_translation: Literal["none", "apertium", "lexical"] = "none"  # source side made for English tossups
    back_translation_every: Count = 1  # every n-th tossup sentence is back-translated
    made: tuple[MadeConfig, ...] = ()  # corpora of which a translator makes one side
    lexicon_weight: NotNegative = 1.0  # bilingual lexicons and CLDR names
    vocabulary_size: Annotated[int, Bound(300, 65535)] = 8000  # pieces, both languages together, 256 bytes among them
    vocabulary_kind: Literal["unigram", "bpe"] = "unigram"  # how SentencePiece learns them
    aligned_sentences: Whole = 120_000  # sentences given to the aligner; the lexicon comes from these
    lexicon_width: Whole = field(default_factory=default_lexicon)  # translations kept per source piece
    seed: Whole = 0
    clean: CleanConfig = field(default_factory=CleanConfig)

    def problems(self) -> list[str]:
        """Beside the bounds."""
        unusable = {name: weight for name, weight in self.weights.items() if not 0 <= weight < math.inf}
        wrong = [f"weights.{name}: must be >= 0, got {weight}" for name, weight in unusable.items()]
        if self.train is None and self.pair not in PAIRS:
            pairs = " or ".join(map(repr, PAIRS))
            wrong.append(f"corpus.pair: expected {pairs}, or your own pairs (`train: pairs.tsv`), got {self.pair!r}")
        if not re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", self.pair):
            wrong.append(f"corpus.pair: expected two languages, as 'fr-en', got {self.pair!r}")
        if self.train is None and self.development is not None:
            wrong.append("corpus.development: is of your own pairs; name them too: `train: pairs.tsv`")
        if self.train is not None and self.back_translation != "none":
            wrong.append("corpus.back_translation: must be none with your own pairs")
        if self.train is not None and self.clean.language:
            wrong.append("corpus.clean.language: must be false with your own pairs")
        return wrong


@dataclass(frozen=True, slots=True)
@checked
class TrainConfig:
    """The optimiser's side of a training."""

    steps: Count = 4000  # optimiser steps in all
    batch_pieces: Count = 2000  # target pieces per batch, padding included
    accumulate: Count = 1  # batches per optimiser step
    k: tuple[int | str, ...] = (3, 6, 9, 12, 15, "full")  # one value: single-k; several: multi-path, one k a batch
    k_weights: tuple[float, ...] = ()  # chance of each k, same order; empty = equal
    emission_rate: Annotated[float, Bound(0.5, 1)] = 1.0  # target words written per source word read, see `Schedule`
    learning_rate: NotNegative = 1.5e-3  # the peak, reached after `warmup` steps
    warmup: Whole = 300  # steps of linear rise
    schedule: Literal["inverse_sqrt", "constant"] = "inverse_sqrt"  # between the rise and the final fall
    cooldown: Whole = 500  # last steps, falling linearly to zero
    label_smoothing: BelowOne = 0.1
    alignment_weight: NotNegative = 0.3  # weight of the guided-alignment loss
    clip: Positive = 1.0  # gradient norm
    weight_decay: NotNegative = 0.0
    checkpoint_every: Count = 250  # steps
    keep: Count = 4  # checkpoints kept, and averaged into the final model
    evaluate_every: Whole = 500  # steps between BLEU measurements on the development set; 0 = never
    evaluate_sentences: Count = 200
    evaluate_k: tuple[int | str, ...] = (6, "full")
    compile: bool = False  # compile the output layer and loss (needs a C++ compiler): a tenth faster
    precision: Literal["float32", "bfloat16"] = "float32"  # of matrix products on a CPU; a GPU takes bfloat16
    threads: Whole = 0  # CPU threads; 0 = torch's choice
    seed: Whole = 0

    def problems(self) -> list[str]:
        """Beside the bounds."""
        for k in (*self.k, *self.evaluate_k):
            parse_k(k)
        wrong = [] if self.k else ["k: at least one value is needed"]
        if self.k_weights and len(self.k_weights) != len(self.k):
            wrong.append(f"k_weights: {len(self.k)} values expected (one per k), got {len(self.k_weights)}")
        if self.k_weights and not (all(0 <= w < math.inf for w in self.k_weights) and sum(self.k_weights) > 0):
            wrong.append(f"k_weights: must be >= 0, finite and not all 0, got {list(self.k_weights)}")
        return wrong


@dataclass(frozen=True, slots=True)
class SmtConfig:
    """One training."""

    name: str  # results go to runs/smt/<name>
    corpus: CorpusConfig
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    development: str = "flores-dev"  # part whose first sentences measure BLEU while training
    start: str | None = None  # a bundled model or a folder whose vocabulary and weights to begin with
    data: str | None = None  # name of another training under the same --runs whose prepared data is used; null = own
    full_encoder: Literal["causal", "bidirectional"] = "causal"  # encoder of a sweep's full-input runs

    def __post_init__(self) -> None:
        if self.corpus.train is not None and self.corpus.development is None and self.train.evaluate_every:
            raise ConfigError("corpus.development: needed to measure BLEU; name a file, or train.evaluate_every: 0")
        if self.data is not None and folder_name(self.data):
            raise ConfigError(folder_name(self.data, "data"))
        if self.model.vocabulary != self.corpus.vocabulary_size:
            expected = f"must equal corpus.vocabulary_size {self.corpus.vocabulary_size}"
            raise ConfigError(f"model.vocabulary: {expected}, got {self.model.vocabulary}")
        if self.model.encoder == "bidirectional" and any(parse_k(k) != FULL for k in self.train.k):
            raise ConfigError("train.k: a bidirectional encoder reads ahead, so only 'full' is possible")
