"""The config of a phrase-based training (smt/statistical/stages.py), e.g. configs/pbmt_es_en.yaml."""

from dataclasses import dataclass, field
from typing import Literal

from smt.statistical.model import Decoding
from smt.statistical.packed import PackingConfig
from smt.training.clean import CleanConfig
from smt.training.prepare import HELD_OUT
from sqa.core.errors import BelowOne, Count, Whole, checked


@dataclass(frozen=True, slots=True)
@checked
class PartsConfig:
    """The text that is learnt from."""

    pair: Literal["es-en", "pl-en"]
    pairs: dict[str, int]  # corpus -> how many of its pairs are aligned, those that suit Quizbowl best
    back_translation: Literal["none", "apertium", "lexical"] = "none"  # source side made for English tossups
    back_translation_every: Count = 1  # every n-th tossup sentence is back-translated
    max_words: Count = 50  # words on either side of an aligned pair
    clean: CleanConfig = field(default_factory=CleanConfig)

    def problems(self) -> list[str]:
        """Beside the bounds."""
        wrong = [f"pairs.{name}: must be >= 0, got {n}" for name, n in self.pairs.items() if n < 0]
        if not sum(self.pairs.values()):
            wrong.append("pairs: at least one corpus with a number of pairs is needed")
        return wrong


@dataclass(frozen=True, slots=True)
@checked
class PhraseConfig:
    """Alignment and phrase table."""

    iterations: Count = 5  # of expectation-maximisation, each direction
    longest: Count = 5  # tokens of a phrase, either side
    once: Whole = 3  # a phrase pair seen once is kept if its source has at most so many tokens
    best: Count = 20  # target phrases kept per source phrase
    least: BelowOne = 1e-4  # word translations less probable are dropped


@dataclass(frozen=True, slots=True)
@checked
class LanguageConfig:
    """The n-gram model (interpolated, Jelinek-Mercer) of all English sides of the corpora in `corpus.pairs`."""

    order: Count = 3  # words
    once: Whole = 2  # an n-gram seen once is kept if it has at most so many words


@dataclass(frozen=True, slots=True)
@checked
class TuningConfig:
    """The search for the weights (smt/statistical/tune.py)."""

    development: tuple[str, ...] = ("flores-dev",)  # parts whose first sentences are translated
    sentences: Whole = 200  # of each part; 0 = no tuning
    rounds: Count = 5  # times the development sentences are translated anew
    candidates: Count = 100  # translations of each sentence the weights are chosen on
    seed: Whole = 0


@dataclass(frozen=True, slots=True)
@checked
class PbmtConfig:
    """One training."""

    kind: Literal["pbmt"]
    name: str  # results go to runs/smt/<name>
    corpus: PartsConfig
    phrases: PhraseConfig = field(default_factory=PhraseConfig)
    language: LanguageConfig = field(default_factory=LanguageConfig)
    tuning: TuningConfig = field(default_factory=TuningConfig)
    decoding: Decoding = field(default_factory=Decoding)
    packing: PackingConfig = field(default_factory=PackingConfig)

    def problems(self) -> list[str]:
        """Beside the bounds."""
        held_out = HELD_OUT[self.corpus.pair]
        return [
            f"tuning.development: {part!r} is not kept out of training; take from {', '.join(held_out)}"
            for part in self.tuning.development
            if part not in held_out
        ]
