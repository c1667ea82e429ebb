"""Settings of the guesser `rerank`, chosen on development tossups.

The item needs the same files as `sqa train guesser configs/train_guessers.yaml:rerank` (300 translated tossups are
enough).  The weights are learnt from the first LEARNT tossups of the first half of the fold `buzzer`, and from the
translated tossups of that half.  The texts below were used neither for the weights nor for the retrieval's word
counts, and none is a question of XQB:

    dev          the first TOSSUPS tossups of the fold `dev`, unchanged
    corrupted    the same tossups with words corrupted
    translated   tossups of the second half of the fold `buzzer`, translated into another language and back

The criterion, fixed before the first training run, is the smallest mean of the three cross entropies.  If the best
settings are not the shipped settings, the accuracy of both on XQB is measured once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from experiments.lab.item import Item, config_inputs
from experiments.lab.ledger import Row, row_of
from experiments.lab.tables import columns, pivot
from guessers import paired
from guessers.rerank.evidence import Knowledge
from guessers.rerank.fitting import Lesson, RerankTraining, fitted
from guessers.rerank.guesser import RerankGuesser
from guessers.rerank.scorer import Scorer
from guessers.rerank.train import at_last_word, knowledge_of, lesson_of_text
from sqa.core.differences import compare
from sqa.core.significance import Mean, means
from sqa.core.types import Floats
from sqa.data.datasets import load_questions
from sqa.data.texts import Tossup, corrupt, tossups_of, translations
from sqa.metrics.qa import Accuracy
from sqa.pipeline.config import load
from sqa.pipeline.paired import intervals

LEARNT, TOSSUPS = 600, 300
SHIPPED = "as shipped"
VARIANTS: Mapping[str, Mapping[str, object]] = {  # changed settings of configs/train_guessers.yaml:rerank
    SHIPPED: {},
    "16 units": {"hidden": 16},
    "256 units": {"hidden": 256},
    "weight decay .01": {"weight_decay": 0.01},
    "weight decay 1": {"weight_decay": 1.0},
    "learning rate .001": {"learning_rate": 0.001},
    "no corrupted tossups": {"noise": 0.0},
    "no translated tossups": {"translated": ()},
}
TEXTS = ("dev", "corrupted", "translated")


def measure(config_path: Path, _: Path) -> Iterator[Row]:
    """Yield scores of every variant on development texts; if the best is not SHIPPED, also accuracies on XQB."""
    config = load(config_path, RerankTraining)
    knowledge = knowledge_of(config.learnt, config.least)
    taught = kinds_of_lessons(knowledge, config, tossups_of(["buzzer"], "first"), LEARNT)
    held = kinds_of_lessons(knowledge, config, tossups_of(["dev"])[:TOSSUPS])
    translated = translations(config.translated, tossups_of(["buzzer"], "second"))
    tests = dict(zip(TEXTS, (held[0], held[1], lessons_of(knowledge, config, translated, count())), strict=True))
    entropies, scorers = {}, {}
    for name, changes in VARIANTS.items():
        changed = replace(config, **changes)
        used = zip(taught, (True, changed.noise, changed.translated), strict=True)
        lessons = [lesson for kind, wanted in used if wanted for lesson in kind]
        scorer = scorers[name] = fitted(changed, [*lessons, *map(at_last_word, taught[0])])
        of_texts = []
        for text, held_out in tests.items():
            yield from (rows := scores((name, text), scorer, held_out))
            of_texts.append(rows[0].value)
        entropies[name] = float(np.mean(of_texts))
        yield Row((name, "mean"), "cross entropy", entropies[name], n=len(TEXTS), unit="nats")
    best = min(entropies, key=entropies.__getitem__)
    if best != SHIPPED:
        yield from on_xqb(
            best, *(RerankGuesser(knowledge, scorers[name], config.learnt.model) for name in (best, SHIPPED))
        )


def kinds_of_lessons(
    knowledge: Knowledge, config: RerankTraining, tossups: Sequence[Tossup], first: int | None = None
) -> list[list[Lesson]]:
    """Return the three lists of lessons that guessers/rerank/train.py uses: unchanged, corrupted, translated tossups.

    `first` is the number of tossups used unchanged and corrupted; None: all.
    """
    unchanged = tossups[:first]
    kinds = (unchanged, corrupt(unchanged, config.noise), translations(config.translated, tossups))
    numbers = count()
    return [lessons_of(knowledge, config, kind, numbers) for kind in kinds]


def lessons_of(
    knowledge: Knowledge, config: RerankTraining, texts: Sequence[Tossup], numbers: Iterable[int]
) -> list[Lesson]:
    """Return the lesson of each text and its number, except for texts without an indexed word."""
    lessons = [lesson_of_text(knowledge, text, number, config) for text, number in zip(texts, numbers, strict=False)]
    return [lesson for lesson in lessons if len(lesson.target)]


def scores(cell: tuple[str, str], scorer: Scorer, lessons: Sequence[Lesson]) -> list[Row]:
    """Return rows of cross entropy in nats and accuracy, each averaged over the steps of a text, then over texts."""
    values = np.array([score(scorer, lesson) for lesson in lessons])
    return [
        row
        for name, column, unit in (("cross entropy", 0, "nats"), ("accuracy", 1, "0-1"))
        for row in intervals(cell, [(Mean(name), means(values[:, column]))], unit=unit)
    ]


def score(scorer: Scorer, lesson: Lesson) -> Floats:
    """Return the mean cross entropy and accuracy over the steps of a lesson.

    A step whose candidates do not include the answer counts as wrong.
    """
    steps = len(lesson.target)
    chances, step = scorer.chances(lesson.rows, lesson.step[:-steps]), lesson.step[:-steps]
    none = 1 - np.bincount(step, chances, steps)
    every = np.concatenate([chances, np.maximum(none, 1e-12)])
    top = np.zeros(steps)
    np.maximum.at(top, step, chances)
    right = (lesson.target < len(chances)) & (every[lesson.target] >= top)
    return np.array([-np.log(every[lesson.target]).mean(), right.mean()])


def on_xqb(name: str, best: RerankGuesser, shipped: RerankGuesser) -> Iterator[Row]:
    """Yield the accuracy on complete questions of XQB with the best and the shipped settings, and the difference."""
    for dataset in ("xqb-es", "xqb-pl"):
        questions = load_questions(dataset)
        a, b = (paired.stats(guesser, questions, complete=True)["accuracy"] for guesser in (best, shipped))
        gap = compare(a, b, Accuracy())
        yield Row((name, dataset), "accuracy", gap.a, n=gap.n, unit="0-1")
        yield Row((SHIPPED, dataset), "accuracy", gap.b, n=gap.n, unit="0-1")
        yield row_of((f"{name} minus shipped", dataset), "accuracy", gap, "0-1")


ITEMS = (
    Item(
        "rerank-settings",
        "which settings of rerank development tossups choose, and what they change on XQB",
        "train_guessers.yaml:rerank",
        ("settings", "texts"),
        measure,
        config_inputs,
        {
            "development": pivot(
                ("settings",),
                [
                    *columns("cross entropy: nats, mean", digits=4, interval=False, cell={"texts": "mean"}),
                    *columns("cross entropy: nats, dev", digits=3, cell={"texts": "dev"}),
                    *columns("accuracy: accuracy, dev", cell={"texts": "dev"}),
                    *columns("accuracy: corrupted", interval=False, cell={"texts": "corrupted"}),
                    *columns("accuracy: translated", interval=False, cell={"texts": "translated"}),
                ],
            )
        },
        kept="eight trainings, minutes",
    ),
)
