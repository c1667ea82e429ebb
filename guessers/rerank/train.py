"""`sqa train guesser configs/train_guessers.yaml:rerank`: learns the order of what retrieval finds.

The texts are tossups of the fold `buzzer`, as they are, with words corrupted and translated there and back
(guessers/fusion/train.py); those as they are teach once more at their last word alone.  Retrieval and the kinds of its
pages have then seen the fold `guesser` only.  The finished model has the weights of the whole fold around the published
counts.  A buzzer learns from guesses for tossups that no part of its guesser saw, so `work` gets the weights of the
fold's first half alone, and buzzers read its second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from tqdm import tqdm

from guessers.fusion.fitting import KEPT_BACK, Lesson, Teaching, fitted
from guessers.fusion.judge import Judge
from guessers.fusion.train import texts_of, tossups_of
from guessers.lessons import lessons
from guessers.rerank.evidence import Knowledge
from guessers.rerank.guesser import Reranker, RerankGuesser
from guessers.rerank.kinds import Kinds
from guessers.rerank.numbers import NUMBERS
from guessers.retrieval.index import Index
from sqa.core.answers import key
from sqa.core.errors import Count, DataError, checked
from sqa.data.folds import Fold, Half
from sqa.data.texts import Tossup
from sqa.files.model_files import resolve_model

HALVES: tuple[Half, Half] = ("first", "second")


@dataclass(frozen=True, slots=True)
class Counts:
    """A retrieval model, and what it counted."""

    model: str  # a bundled BM25 model or a folder
    folds: tuple[Fold, ...]  # of tossups
    bonus: bool  # bonus parts too


@dataclass(frozen=True, slots=True, kw_only=True)
@checked
class RerankTraining(Teaching):
    """Keys of configs/train_guessers.yaml:rerank; see there for meanings and units."""

    kind: Literal["rerank"]
    output: Path
    work: Path
    learnt: Counts
    published: Counts
    least: Count

    def problems(self) -> list[str]:
        """Beside the bounds."""
        seen = "buzzer" in self.learnt.folds
        return ["learnt.folds: must be without buzzer, which the weights are learnt from"] if seen else []


def train(config: RerankTraining) -> RerankGuesser:
    """The guesser with the published counts; `config.work` gets the one for training buzzers."""
    reranker = reranker_of(config.learnt, config.least)
    first, second = (read(reranker, config, half) for half in HALVES)
    RerankGuesser(reranker, judge_of(config, first), config.learnt.model).save(config.work)
    return RerankGuesser(
        reranker_of(config.published, config.least), judge_of(config, [*first, *second]), config.published.model
    )


def read(reranker: Reranker, config: RerankTraining, half: Half) -> list[Lesson]:
    """What the texts of a half of the fold teach; those in which nothing is known are left out."""
    texts = texts_of(config, (half,))
    if len(texts) < KEPT_BACK:
        raise DataError(f"{config.output}: {len(texts)} texts of the {half} half to learn from; raise limit")
    bar = tqdm(texts, f"guessing, {half} half", mininterval=2)
    lessons_of = [lesson_of(reranker, text, place, config) for place, text in enumerate(bar)]
    as_they_are = lessons_of[: len(tossups_of((half,))[: config.limit])]
    taught = [lesson for lesson in lessons_of if len(lesson.target)]
    return [*taught, *(at_last_word(lesson) for lesson in as_they_are if len(lesson.target))]


def at_last_word(lesson: Lesson) -> Lesson:
    """A lesson's last step alone."""
    rows = np.flatnonzero(lesson.step == len(lesson.target) - 1)
    return Lesson(lesson.rows[rows], np.zeros(len(rows), np.int64), np.searchsorted(rows, lesson.target[-1:]))


def judge_of(config: RerankTraining, taught: Sequence[Lesson]) -> Judge:
    """Weights learnt from some texts, of which one in KEPT_BACK chooses the epoch."""
    learnt = [lesson for place, lesson in enumerate(taught) if place % KEPT_BACK]
    return Judge(fitted(config, learnt, taught[::KEPT_BACK]), len(NUMBERS))


def reranker_of(counts: Counts, least: int) -> Reranker:
    """Some counts with the kinds of what they counted.  DataError if a lesson is of a page that they lack."""
    index = Index.load(resolve_model(counts.model))
    taught = lessons(counts.folds, counts.bonus)
    if strange := {lesson.page for lesson in taught} - set(index.titles):
        raise DataError(
            f"{counts.model}: lacks {len(strange)} pages of its folds, {min(map(str, strange))!r} for one; "
            "count them again"
        )
    return Reranker(Knowledge(index, Kinds.of(taught, index.titles, least)))


def lesson_of(reranker: Reranker, text: Tossup, place: int, config: RerankTraining) -> Lesson:
    """The candidates at the last word of a text and at `points` - 1 others, drawn at random."""
    words = text.text.split()
    rng = np.random.default_rng([config.seed, place])
    ends: Sequence[int] = sorted({len(words), *map(int, rng.integers(1, len(words) + 1, config.points - 1))})
    found = reranker.candidates(words, ends)
    m, t = len(found.pages), len(found.words)
    target = m + np.arange(t)
    wanted = key(text.page) if text.page is not None else None
    for row, page in enumerate(found.pages.tolist()):
        if key(reranker.known.titles[page]) == wanted:
            target[found.step[row]] = row
    step = np.concatenate([found.step, np.arange(t)])
    return Lesson(found.rows.astype(np.float32), step, target)
