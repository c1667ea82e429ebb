"""Configuration of phrase-based training (smt/statistical/stages.py), such as configs/pbmt_es_en.yaml."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from smt.statistical.packed import Decoding, PackingConfig
from smt.training.clean import CleanConfig
from smt.training.prepare import HELD_OUT
from smt.training.synthetic import MadeConfig
from sqa.core import BelowOne, Count, Whole, checked


@dataclass(frozen=True, slots=True)
@checked
class PartsConfig:
    """The training text."""

    pair: Literal["es-en", "pl-en"]
    pairs: Annotated[
        dict[str, int], "corpus -> number of pairs to align; the pairs most similar to Quizbowl are chosen"
    ]
    made: Annotated[tuple[MadeConfig, ...], "corpora in which a translator made one side"] = ()
    max_words: Annotated[Count, "maximum number of words on either side of an aligned pair"] = 50
    clean: CleanConfig = field(default_factory=CleanConfig)

    def problems(self) -> list[str]:
        """Return problems beyond the ranges of single fields."""
        wrong = [f"pairs.{name}: must be >= 0, got {n}" for name, n in self.pairs.items() if n < 0]
        if not sum(self.pairs.values()):
            wrong.append("pairs: at least one corpus with a number of pairs is needed")
        return wrong


@dataclass(frozen=True, slots=True)
@checked
class PhraseConfig:
    """Settings of alignment and phrase table."""

    iterations: Annotated[Count, "iterations of expectation-maximisation in each direction"] = 5
    longest: Annotated[Count, "maximum number of tokens of a phrase on either side"] = 5
    once: Annotated[Whole, "maximum source tokens of a phrase pair that was seen once"] = 3
    best: Annotated[Count, "maximum target phrases per source phrase"] = 20
    least: Annotated[BelowOne, "minimum probability of a word translation"] = 1e-4


@dataclass(frozen=True, slots=True)
@checked
class LanguageConfig:
    """The n-gram model (interpolated, Jelinek-Mercer) of all English sides of the corpora in `corpus.pairs`."""

    order: Annotated[Count, "maximum number of words of an n-gram"] = 3
    once: Annotated[Whole, "maximum number of words of an n-gram that was seen once"] = 2


@dataclass(frozen=True, slots=True)
@checked
class TuningConfig:
    """Settings of the search for weights (smt/statistical/tune.py)."""

    development: Annotated[tuple[str, ...], "parts whose first sentences are used for tuning"] = ("flores-dev",)
    sentences: Annotated[Whole, "sentences of each part; 0 = no tuning"] = 200
    rounds: Annotated[Count, "number of times that the development sentences are retranslated"] = 5
    candidates: Annotated[Count, "number of translations per sentence for the choice of weights"] = 100
    seed: Whole = 0


@dataclass(frozen=True, slots=True)
@checked
class PbmtConfig:
    """Configuration of one training run."""

    kind: Literal["pbmt"]
    name: Annotated[str, "results are written to runs/smt/<name>"]
    corpus: PartsConfig
    phrases: PhraseConfig = field(default_factory=PhraseConfig)
    language: LanguageConfig = field(default_factory=LanguageConfig)
    tuning: TuningConfig = field(default_factory=TuningConfig)
    decoding: Decoding = field(default_factory=Decoding)
    packing: PackingConfig = field(default_factory=PackingConfig)

    def problems(self) -> list[str]:
        """Return problems beyond the ranges of single fields."""
        held_out = HELD_OUT[self.corpus.pair]
        return [
            f"tuning.development: {part!r} is not held out of training; choose from {', '.join(held_out)}"
            for part in self.tuning.development
            if part not in held_out
        ]
