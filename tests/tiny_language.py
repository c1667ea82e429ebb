"""A toy corpus of a few hundred sentence pairs, and phrase-based SMT trained on it in seconds."""

import itertools
from pathlib import Path

import pytest

from smt.statistical import stages as statistical_train
from smt.statistical.stages_config import LanguageConfig, PartsConfig, PbmtConfig, PhraseConfig, TuningConfig
from sqa.data.texts import Pair

NOUNS = {"perro": "dog", "gato": "cat", "libro": "book", "autor": "author", "rey": "king", "barco": "ship"}
VERBS = {"mira": "watches", "tiene": "has", "busca": "seeks"}
COLOURS = {"rojo": "red", "negro": "black", "viejo": "old"}
CONFIG = PbmtConfig(
    kind="pbmt",
    name="tiny",
    corpus=PartsConfig("es-en", {"made": 300, "other": 1}),
    phrases=PhraseConfig(iterations=4, longest=4, once=2, best=5),
    language=LanguageConfig(order=2, once=2),
    tuning=TuningConfig(("flores-dev",), sentences=6, rounds=2, candidates=10),
)


def pairs():
    """Yield sentence pairs in which adjectives follow the noun in Spanish and precede it in English."""
    for (a, x), (v, y), (b, z), (c, w) in itertools.product(
        NOUNS.items(), VERBS.items(), NOUNS.items(), COLOURS.items()
    ):
        yield f"El {a} {c} {v} el {b}.", f"The {w} {x} {y} the {z}.", "made"
    yield "Ana", "Ana", "other"


def train_tiny(runs: Path) -> Path:
    """Train a model in a folder of runs and return the model's folder."""
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_language(patch)
        statistical_train.train(CONFIG, runs)
    return runs / "smt" / CONFIG.name / "model"


def use_tiny_language(patch: pytest.MonkeyPatch) -> None:
    rows = list(pairs())
    patch.setattr(statistical_train, "cleaned", lambda config, report: iter(rows))
    entries = [("reina", "queen", "freedict"), ("España", "Spain", "cldr")]
    patch.setattr(statistical_train, "lexicon_pairs", lambda pair: iter(entries))
    patch.setattr("sqa.data.texts.load_parallel", lambda pair, part: (Pair(*row) for row in rows[::23]))
