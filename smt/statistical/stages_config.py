"""Configuration of a phrase-based training (smt/statistical/stages.py), such as configs/pbmt_es_en.yaml."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from smt.statistical.model import Decoding
from smt.statistical.packed import PackingConfig
from smt.training.clean import CleanConfig
from smt.training.prepare import HELD_OUT
from sqa.core.schema import BelowOne, Count, Whole, checked


@dataclass(frozen=True, slots=True)
@checked
class PartsConfig:
    """The training text."""

    pair: Literal["es-en", "pl-en"]
    pairs: Annotated[dict[str, int], "corpus -> how many of its pairs are aligned, those that suit Quizbowl best"]
    back_translation: Annotated[Literal["none", "apertium", "lexical"], "source side made for English tossups"] = "none"
    back_translation_every: Annotated[Count, "every n-th tossup sentence is back-translated"] = 1
    max_words: Annotated[Count, "words on either side of an aligned pair"] = 50
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

    iterations: Annotated[Count, "of expectation-maximisation, each direction"] = 5
    longest: Annotated[Count, "tokens of a phrase, either side"] = 5
    once: Annotated[Whole, "a phrase pair seen once is kept if its source has at most so many tokens"] = 3
    best: Annotated[Count, "target phrases kept per source phrase"] = 20
    least: Annotated[BelowOne, "word translations less probable are dropped"] = 1e-4


@dataclass(frozen=True, slots=True)
@checked
class LanguageConfig:
    """The n-gram model (interpolated, Jelinek-Mercer) of all English sides of the corpora in `corpus.pairs`."""

    order: Annotated[Count, "words"] = 3
    once: Annotated[Whole, "an n-gram seen once is kept if it has at most so many words"] = 2


@dataclass(frozen=True, slots=True)
@checked
class TuningConfig:
    """Settings of the search for weights (smt/statistical/tune.py)."""

    development: Annotated[tuple[str, ...], "parts whose first sentences are translated"] = ("flores-dev",)
    sentences: Annotated[Whole, "of each part; 0 = no tuning"] = 200
    rounds: Annotated[Count, "times the development sentences are translated anew"] = 5
    candidates: Annotated[Count, "translations of each sentence the weights are chosen on"] = 100
    seed: Whole = 0


@dataclass(frozen=True, slots=True)
@checked
class PbmtConfig:
    """Configuration of one training."""

    kind: Literal["pbmt"]
    name: Annotated[str, "results go to runs/smt/<name>"]
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
            f"tuning.development: {part!r} is not kept out of training; take from {', '.join(held_out)}"
            for part in self.tuning.development
            if part not in held_out
        ]
