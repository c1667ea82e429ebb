"""Recipe of the buzzer `rerank-translated`, chosen on development tossups.

The item needs the model of `sqa train guesser configs/train_guessers.yaml:rerank` that was trained on the first half of
the fold `buzzer`, and 300 tossups per language that were translated back and forth.  LIMIT unchanged tossups of the
second half are used.  The texts below were used neither for training nor for choosing an epoch or a threshold, and none
is a question of XQB:

    dev          the first TOSSUPS tossups of the fold `dev`, unchanged
    corrupted    the same tossups with words corrupted
    Spanish      tossups of the fold `dev`, translated into Spanish and back
    Polish       tossups of the fold `dev`, translated into Polish and back

    python -m guessers.noise --fold dev --tossups 200 --output runs/train/dev.es.jsonl
    python -m guessers.noise --fold dev --tossups 200 --output runs/train/dev.pl.jsonl --model pl-en \\
        --there "python -m smt.training.lexical_lines pl-en"

The criterion, fixed before the first training run, is the largest mean of EW on Spanish and Polish, where a question
without a buzz is answered with the best guess.  If a recipe other than the shipped one is best, the buzzers of both
answer XQB once by the paper's rule, after the translators in XQB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from buzzers import wins
from buzzers.histories import GuessHistory, guesser_of, histories_of
from buzzers.learnt import LearntBuzzer
from buzzers.train import Learning, learn, material
from experiments.lab import grid_rows
from experiments.lab.item import Item, config_inputs
from experiments.lab.ledger import Row, row_of
from experiments.lab.tables import columns, pivot
from sqa.core.differences import compare
from sqa.core.errors import DataError
from sqa.core.k import FULL
from sqa.core.paths import CONFIGS
from sqa.core.significance import Mean, means
from sqa.core.trace import QuestionTrace
from sqa.core.types import Floats
from sqa.data.texts import corrupt, tossups_of, translations
from sqa.metrics.qa import expected_wins
from sqa.pipeline.config import load
from sqa.pipeline.paired import intervals

LIMIT, TOSSUPS = 300, 300
SHIPPED, LESS = "as shipped", "slightly corrupted"
VARIANTS: Mapping[str, Mapping[str, Mapping[str, object]]] = {  # part of the config -> changed settings
    SHIPPED: {},
    "16 units": {"network": {"hidden": 16}},
    "128 units": {"network": {"hidden": 128}},
    "published features": {"training": {"features": "qanta"}},
    "label alone": {"training": {"objective": "label"}},
    "no cross entropy": {"training": {"label_weight": 0.0}},
    "trained for silence": {"end": {"end": "silent"}},
    LESS: {"data": {"noise_least": 0.0}},
    "no corrupted tossups": {"data": {"noise": 0.0, "noise_least": 0.0}},
    "no translated tossups": {"data": {"translated": ()}},
}
TEXTS = ("dev", "corrupted", "Spanish", "Polish")
CHOOSING = ("Spanish", "Polish")
XQB = {("rerank", "wait-k", 3), ("rerank", "phrase-based", 6), ("rerank", "reference", FULL)}  # bundled translators
NAMES = {"wait-k": "wait-3", "phrase-based": "phrase-based wait-6", "reference": "human"}
FILES = (Path("runs/train/dev.es.jsonl"), Path("runs/train/dev.pl.jsonl"))


def measure(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield EW of every recipe and its difference from the shipped one on development texts, and of the best on XQB."""
    config = load(config_path, Learning)
    config = replace(config, data=replace(config.data, limit=LIMIT))
    tests = development(config)
    shipped: dict[str, Floats] = {}
    trained: dict[str, tuple[float, LearntBuzzer]] = {}  # recipe -> mean EW on CHOOSING, buzzer
    for name, changes in VARIANTS.items():
        buzzer = trained_by(varied(config, changes))
        values = {text: answered(buzzer, histories) for text, histories in tests.items()}
        values["mean"] = np.mean([values[text] for text in CHOOSING], axis=0)  # of the same tossups, see `development`
        trained[name] = float(values["mean"].mean()), buzzer
        for text, won in values.items():
            yield from intervals((name, text), [(Mean("ew"), means(won))], unit="0-1")
            if name == SHIPPED:
                shipped[text] = won
            else:
                yield difference((name, text), won, shipped[text])
    if (best := max(trained, key=lambda name: trained[name][0])) != SHIPPED:
        yield from on_xqb(best, trained[best][1], trained[SHIPPED][1], runs)


def difference(cell: tuple[str, str], won: Floats, shipped: Floats) -> Row:
    """Return the mean difference of two arrays of EW, paired over questions."""
    return row_of(cell, "difference", compare(means(won), means(shipped), Mean("difference")), "0-1")


def on_xqb(name: str, best: LearntBuzzer, shipped: LearntBuzzer, runs: Path) -> Iterator[Row]:
    """Yield the EW of two buzzers by the paper's rule for the guesses of `rerank` on XQB."""
    grid = grid_rows.finished(CONFIGS / "ablation.yaml", runs, lambda c: (c.contestant, c.family, c.k) in XQB)
    for result in grid:
        text = f"{result.cell.dataset}, {NAMES[result.cell.family]}"
        traces = result.run.traces
        a, b = (np.array([silent_wins(buzzer, trace) for trace in traces]) for buzzer in (best, shipped))
        for recipe, won in ((name, a), (SHIPPED, b)):
            yield from intervals((recipe, text), [(Mean("ew"), means(won))], unit="0-1")
        yield difference((name, text), a, b)


def silent_wins(buzzer: LearntBuzzer, trace: QuestionTrace) -> float:
    """Return the EW of a question by the paper's rule, at the threshold for that rule."""
    threshold = buzzer.card.chosen(None, "silent").threshold
    answered = [buzz.score >= threshold for buzz in buzzer.decide(trace.guesses or ())]
    return expected_wins(wins.CURVE, trace.fraction, trace.correct, np.array(answered, dtype=bool))


def development(config: Learning) -> dict[str, list[GuessHistory]]:
    """Return the guesses for the development texts, by name.

    Raises DataError unless the two files of translations have the same tossups.
    """
    tossups = tossups_of(["dev"])
    unchanged, data = tossups[:TOSSUPS], config.data
    translated = [translations([file], tossups) for file in FILES]
    if len({tuple(tossup.id for tossup in of_file) for of_file in translated}) > 1:
        raise DataError(f"{' and '.join(map(str, FILES))}: not of the same tossups")
    sets = (unchanged, corrupt(unchanged, data.noise, data.noise_least), *translated)
    guesser = guesser_of(data)
    return {name: histories_of(guesser, of, name, data.cache) for name, of in zip(TEXTS, sets, strict=True)}


def varied(config: Learning, changes: Mapping[str, Mapping[str, object]]) -> Learning:
    """Return a config with changed settings."""
    parts = {part: replace(getattr(config, part), **keys) for part, keys in changes.items() if part != "end"}
    return replace(config, **parts, **changes.get("end", {}))


def trained_by(config: Learning) -> LearntBuzzer:
    """Return the buzzer that a config trains."""
    learnt, kept, tuning, _ = material(config.data)
    return learn(config, learnt, kept, tuning)[0]


def answered(buzzer: LearntBuzzer, histories: list[GuessHistory]) -> Floats:
    """Return (n,) EW of each tossup, where a tossup without a buzz is answered with the best guess."""
    threshold = buzzer.card.chosen(None, "answer").threshold
    chances = [buzzer.chances(history.rows) for history in histories]
    return wins.wins(histories, chances, np.array([threshold]), at_end=True)[:, 0]


ITEMS = (
    Item(
        "buzzer-settings",
        "which recipe of the buzzer `rerank-translated` development tossups choose",
        "train_buzzers.yaml:mlp-rerank-translated",
        ("recipe", "texts"),
        measure,
        config_inputs,
        {
            "development": pivot(
                ("recipe",),
                [
                    *columns("ew: EW, mean", cell={"texts": "mean"}),
                    *columns("difference: minus shipped", sign=True, cell={"texts": "mean"}),
                    *columns("ew: dev", interval=False, cell={"texts": "dev"}),
                    *columns("ew: corrupted", interval=False, cell={"texts": "corrupted"}),
                    *columns("ew: Spanish", interval=False, cell={"texts": "Spanish"}),
                    *columns("ew: Polish", interval=False, cell={"texts": "Polish"}),
                ],
                recipe=list(VARIANTS),
            ),
            "xqb": pivot(
                ("texts",),
                [
                    *columns("ew: as shipped", cell={"recipe": SHIPPED}),
                    *columns("ew: slightly corrupted", cell={"recipe": LESS}),
                    *columns("difference", sign=True, cell={"recipe": LESS}),
                ],
                texts=[f"{dataset}, {name}" for dataset in ("xqb-es", "xqb-pl") for name in NAMES.values()],
            ),
        },
        kept="ten training runs, minutes",
    ),
)
