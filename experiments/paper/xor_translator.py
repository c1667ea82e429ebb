"""Translator of Finnish or Russian questions for Table 4, trained on XOR-TyDi's own human translations.

`sqa reproduce table4` trains the models runs/smt/xor-fi-en/model and runs/smt/xor-ru-en/model.

The models are phrase-based (Thot, smt/statistical/stages.py).  They are trained on the translated questions outside
XOR-TyDi's splits (about 2,500 Finnish and 2,800 Russian) and on names of countries, languages and currencies
(Unicode CLDR).  No question of Table 4 is used for training.  The models need no download and are far weaker than a
model trained on millions of sentences.
"""

import shutil
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from smt.models.vocab import normalise
from smt.statistical.packed import Decoding, read_model, write_model
from smt.statistical.stages import make_alignment, make_language, make_phrases, write_corpus
from smt.statistical.stages_config import LanguageConfig, PhraseConfig, TuningConfig
from smt.statistical.tune import tune_language, tune_weights, write_development
from smt.training.prepare import names
from sqa.core import SqaError, need
from sqa.data.xor_tydi import SPLITS, load_translations, load_xor_tydi
from sqa.files import digest

Pair = tuple[str, str]  # question, its English translation
VERSION = 1  # increase it when the code would train a different model on the same questions
HELD_BACK = 200  # translations for tuning the weights


@dataclass(frozen=True, slots=True)
class XorTraining:
    """Settings for the stages of training a phrase-based model."""

    pair: str  # "fi-en"
    phrases: PhraseConfig = field(default_factory=PhraseConfig)
    language: LanguageConfig = field(default_factory=lambda: LanguageConfig(once=3))
    tuning: TuningConfig = field(default_factory=lambda: TuningConfig(development=()))
    decoding: Decoding = field(default_factory=Decoding)


def training_pairs(language: str) -> list[Pair]:
    """Return (question, human translation) of every translated question outside all splits."""
    test_questions = {question.text for split in SPLITS for question in load_xor_tydi(split, language)}
    english = {q.translation for q in load_xor_tydi("train-engspan", language)}
    pairs = load_translations(language).items()
    return [(x, y) for x, y in pairs if x not in test_questions and y not in english and x != y]


def model(language: str, runs: Path) -> Path:
    """Return the folder of a language's model, which is trained (half a minute) if missing or out of date."""
    folder = runs / "smt" / f"xor-{language}-en"
    config, pairs = XorTraining(f"{language}-en"), training_pairs(language)
    key = digest([VERSION, HELD_BACK, asdict(config), pairs])
    try:
        made_from = read_model(folder / "model")["about"].get("key")
    except SqaError:  # no model, or an incomplete one
        made_from = None
    if made_from != key:
        train(config, pairs, key, folder)
    return folder / "model"


def train(config: XorTraining, questions: list[Pair], key: str, folder: Path) -> None:
    """Train a model from scratch and write it to `folder`; `key` identifies its settings and training data."""
    need("thot", "phrase-based translation")
    need("babel", "names of countries, languages and currencies")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "model").mkdir(parents=True)
    language = config.pair.partition("-")[0]
    pairs = [(normalise(x), normalise(y)) for x, y in questions]
    development, pairs = pairs[:HELD_BACK], pairs[HELD_BACK:]
    entries = [(normalise(x), normalise(y)) for x, y, _ in names(language)]
    forms = write_corpus(folder, pairs, entries, [y for _, y in pairs])
    write_development(folder, development, forms)
    make_language(config, folder)
    make_alignment(config, folder)
    make_phrases(config, folder)
    tune_language(config, folder)
    weights, rounds = tune_weights(config, folder, folder / "model")
    shutil.rmtree(folder / "tuning")
    about = {"key": key, "training": asdict(config), "tuning": rounds}
    write_model(folder / "model", weights, config.decoding, forms[0], about)
    print(f"sqa: {config.pair}: {len(pairs)} questions, {len(entries)} names", file=sys.stderr)
