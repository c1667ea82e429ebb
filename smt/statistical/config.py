"""The config of a phrase-based training (smt/statistical/train.py), e.g. configs/pbmt_es_en.yaml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from smt.statistical.model import Decoding
from smt.statistical.packed import PackingConfig
from smt.training.clean import CleanConfig
from smt.training.prepare import HELD_OUT
from sqa.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class PartsConfig:
    """The text that is learnt from."""

    pair: Literal["es-en", "pl-en"]
    pairs: dict[str, int]  # corpus -> how many of its pairs are aligned, those that suit Quizbowl best
    back_translation: Literal["none", "apertium", "lexical"] = "none"  # source side made for English tossups
    back_translation_every: int = 1  # every n-th tossup sentence is back-translated
    max_words: int = 50  # words on either side of an aligned pair
    clean: CleanConfig = field(default_factory=CleanConfig)


@dataclass(frozen=True, slots=True)
class PhraseConfig:
    """Alignment and phrase table."""

    iterations: int = 5  # of expectation-maximisation, each direction
    longest: int = 5  # tokens of a phrase, either side
    once: int = 3  # a phrase pair seen once is kept if its source has at most so many tokens
    best: int = 20  # target phrases kept per source phrase
    least: float = 1e-4  # word translations less probable are dropped


@dataclass(frozen=True, slots=True)
class LanguageConfig:
    """The n-gram model (interpolated, Jelinek-Mercer) of all English sides of the corpora in `corpus.pairs`."""

    order: int = 3  # words
    once: int = 2  # an n-gram seen once is kept if it has at most so many words


@dataclass(frozen=True, slots=True)
class TuningConfig:
    """The search for the weights (smt/statistical/mert.py)."""

    development: tuple[str, ...] = ("flores-dev",)  # parts whose first sentences are translated
    sentences: int = 200  # of each part; 0 = no tuning
    rounds: int = 5  # times the development sentences are translated anew
    candidates: int = 100  # translations of each sentence the weights are chosen on
    seed: int = 0


@dataclass(frozen=True, slots=True)
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

    def __post_init__(self) -> None:
        wrong = [
            f"{key}: must be >= {least}, got {value}"
            for key, least, value in (
                ("corpus.back_translation_every", 1, self.corpus.back_translation_every),
                ("corpus.max_words", 1, self.corpus.max_words),
                ("phrases.iterations", 1, self.phrases.iterations),
                ("phrases.longest", 1, self.phrases.longest),
                ("phrases.best", 1, self.phrases.best),
                ("language.order", 1, self.language.order),
                ("tuning.sentences", 0, self.tuning.sentences),
                ("tuning.rounds", 1, self.tuning.rounds),
                ("tuning.candidates", 1, self.tuning.candidates),
            )
            if value < least
        ]
        wrong += [f"corpus.pairs.{name}: must be >= 0, got {n}" for name, n in self.corpus.pairs.items() if n < 0]
        if not 0 <= self.phrases.least < 1:
            wrong.append(f"phrases.least: must be in [0, 1), got {self.phrases.least}")
        held_out = HELD_OUT[self.corpus.pair]
        wrong += [
            f"tuning.development: {part!r} is not kept out of training; take from {', '.join(held_out)}"
            for part in self.tuning.development
            if part not in held_out
        ]
        if not sum(self.corpus.pairs.values()):
            wrong.append("corpus.pairs: at least one corpus with a number of pairs is needed")
        if wrong:
            raise ConfigError(wrong)
