"""`sqa train guesser configs/train_guessers.yaml:fusion`: learns how much each guesser counts.

The texts are tossups of the fold `buzzer`, of its first half (its second is for the buzzers of the fusion): as they
are, with words corrupted (sqa/data/texts.py), and translated there and back where such files are named.  At some
words of each text every guesser names its best pages, and the weights learn which of them, or none, is the answer
(cross entropy over the candidates of the step).  Guessers that counted or read this fold would look better than they
are: the config names those that did not, and under which names (`published`) the finished model asks for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from guessers.fusion.candidates import DEPTH, candidates
from guessers.fusion.fitting import KEPT_BACK, Lesson, Teaching, drawn_ends, fitted, lesson_of
from guessers.fusion.guesser import FusionGuesser, built
from sqa.core.answers import is_right
from sqa.core.errors import DataError, checked
from sqa.data.texts import Half, Tossup, corrupt, fold_of, half_of, load_tossups, translations
from sqa.run.config import ComponentConfig


@dataclass(frozen=True, slots=True, kw_only=True)
@checked
class FusionTraining(Teaching):
    """Keys of configs/train_guessers.yaml:fusion; see there for meanings and units."""

    kind: Literal["fusion"]
    output: Path
    work: Path
    guessers: tuple[ComponentConfig, ...]
    published: dict[str, str]

    def problems(self) -> list[str]:
        """Beside the bounds."""
        return [] if len(self.guessers) > 1 else ["guessers: a fusion is of two or more"]


def train(config: FusionTraining) -> FusionGuesser:
    """The fusion, its guessers under their published names; `config.work` gets it under those it learnt with."""
    texts = texts_of(config)
    if len(texts) < KEPT_BACK:
        raise DataError(f"{config.output}: {len(texts)} texts to learn from; raise limit")
    parts = built(config.guessers)
    lessons = lessons_of([part for _, part in parts], texts, config.points, config.seed)
    scorer = fitted(config, lessons)
    FusionGuesser(parts, scorer).save(config.work)
    return FusionGuesser(built([published(part, config.published) for part in config.guessers]), scorer)


def texts_of(config: Teaching, halves: Sequence[Half] = ("first",)) -> list[Tossup]:
    """The tossups of some halves of the fold as they are, corrupted and translated."""
    whole = tossups_of(halves)
    tossups = whole[: config.limit]
    corrupted = corrupt(tossups, config.noise) if config.noise else []
    return [*tossups, *corrupted, *translations(config.translated, whole)]


def tossups_of(halves: Sequence[Half]) -> list[Tossup]:
    """The tossups of some halves of the fold."""
    return [tossup for tossup in load_tossups() if fold_of(tossup.id) == "buzzer" and half_of(tossup.id) in halves]


def lessons_of(parts: Sequence[Any], texts: Sequence[Tossup], points: int, seed: int) -> list[Lesson]:
    """What the guessers name at the last word of each text and at `points` - 1 others, drawn at random."""
    lessons = []
    for number, text in enumerate(tqdm(texts, "guessing", mininterval=2)):
        words = text.text.split()
        ends = drawn_ends(len(words), points, seed, number)
        prefixes = [" ".join(words[:end]) for end in ends]
        named = candidates([part.guess(prefixes, DEPTH) for part in parts], ends)
        right = [text.page is not None and is_right(page, text.page) for page in named.pages]
        lessons.append(lesson_of(named.rows, named.step, np.array(right, np.bool_)))
    return lessons


def published(part: ComponentConfig, names: Mapping[str, str]) -> ComponentConfig:
    """The same guesser with its model under the name that `names` has for it."""
    model = getattr(part.options, "model", None)
    if model is None or model not in names:
        return part
    return ComponentConfig(part.name, replace(part.options, model=names[model]))
