"""Command `sqa train guesser configs/train_guessers.yaml:rerank`: learn the order of retrieved pages.

The texts are tossups of the fold `buzzer`: unchanged, with words corrupted (sqa/data/texts.py), and translated back and
forth.  The unchanged tossups are used a second time at their last word alone.  In training, retrieval and the kinds of
pages are counted on the fold `guesser` alone.  The finished model combines weights from the whole fold `buzzer` with
the published counts.  A buzzer learns from guesses for tossups that no part of its guesser saw.  Therefore the guesser
in `work` has weights from the first half of the fold `buzzer`, and buzzers use the second half.
"""

import numpy as np
from tqdm import tqdm

from guessers.rerank.answer_types import Kinds
from guessers.rerank.evidence import Knowledge
from guessers.rerank.fitting import KEPT_BACK, Counts, Lesson, RerankTraining, drawn_ends, fitted, lesson_of
from guessers.rerank.guesser import RerankGuesser, candidates
from guessers.retrieval.bm25 import Index
from guessers.training_texts import training_texts
from sqa.core.answers import key
from sqa.core.errors import DataError
from sqa.data.texts import Half, Tossup, corrupt, tossups_of, translations
from sqa.files.model_files import resolve_model

HALVES: tuple[Half, Half] = ("first", "second")


def train(config: RerankTraining) -> RerankGuesser:
    """Return the guesser with the published counts; write the guesser for training buzzers to `config.work`."""
    knowledge = knowledge_of(config.learnt, config.least)
    first, second = (read(knowledge, config, half) for half in HALVES)
    RerankGuesser(knowledge, fitted(config, first), config.learnt.model).save(config.work)
    return RerankGuesser(
        knowledge_of(config.published, config.least), fitted(config, [*first, *second]), config.published.model
    )


def read(knowledge: Knowledge, config: RerankTraining, half: Half) -> list[Lesson]:
    """Return the lessons of a half of the fold, except texts without an indexed word."""
    whole = tossups_of(["buzzer"], half)
    unchanged = whole[: config.limit]
    corrupted = corrupt(unchanged, config.noise) if config.noise else []
    texts = [*unchanged, *corrupted, *translations(config.translated, whole)]
    if len(texts) < KEPT_BACK:
        raise DataError(f"{config.output}: only {len(texts)} training texts in the {half} half; raise limit")
    bar = tqdm(texts, f"guessing, {half} half", mininterval=2)
    lessons_of = [lesson_of_text(knowledge, text, number, config) for number, text in enumerate(bar)]
    taught = [lesson for lesson in lessons_of if len(lesson.target)]
    return [*taught, *(at_last_word(lesson) for lesson in lessons_of[: len(unchanged)] if len(lesson.target))]


def at_last_word(lesson: Lesson) -> Lesson:
    """Return only the last step of a lesson."""
    rows = np.flatnonzero(lesson.step == len(lesson.target) - 1)
    return Lesson(lesson.rows[rows], np.zeros(len(rows), np.int64), np.searchsorted(rows, lesson.target[-1:]))


def knowledge_of(counts: Counts, least: int) -> Knowledge:
    """Return the knowledge from a retrieval model and its texts.  Raises DataError if the model lacks a page."""
    index = Index.load(resolve_model(counts.model))
    taught = training_texts(counts.folds, counts.bonus)
    if lacking := {lesson.page for lesson in taught} - set(index.titles):
        raise DataError(
            f"{counts.model}: lacks {len(lacking)} pages of its folds, e.g. {min(map(str, lacking))!r}; "
            "count them again"
        )
    return Knowledge(index, Kinds.of(taught, index.titles, least))


def lesson_of_text(knowledge: Knowledge, text: Tossup, number: int, config: RerankTraining) -> Lesson:
    """Return the candidates at the last word of a text and at `points` - 1 other words, drawn at random."""
    words = text.text.split()
    ends = drawn_ends(len(words), config.points, config.seed, number)
    described = candidates(knowledge, words, ends)
    answer = key(text.page) if text.page is not None else None
    right = [key(knowledge.titles[page]) == answer for page in described.pages.tolist()]
    return lesson_of(described.rows, described.step, np.array(right, np.bool_))
