"""`sqa train guesser configs/train_guessers.yaml:rerank`: learns the order of what retrieval finds.

The texts are tossups of the fold `buzzer`, as they are, with words corrupted (sqa/data/texts.py) and translated there
and back; the unchanged tossups teach once more at their last word alone.  Retrieval and the kinds of its
pages have then seen the fold `guesser` only.  The finished model has the weights of the whole fold around the published
counts.  A buzzer learns from guesses for tossups that no part of its guesser saw, so `work` gets the weights of the
fold's first half alone, and buzzers read its second.
"""

import numpy as np
from tqdm import tqdm

from guessers.lessons import lessons
from guessers.rerank.evidence import Knowledge
from guessers.rerank.fitting import KEPT_BACK, Counts, Lesson, RerankTraining, drawn_ends, fitted, lesson_of
from guessers.rerank.guesser import RerankGuesser, candidates
from guessers.rerank.kinds import Kinds
from guessers.retrieval.bm25 import Index
from sqa.core.answers import key
from sqa.core.errors import DataError
from sqa.data.texts import Half, Tossup, corrupt, tossups_of, translations
from sqa.files.model_files import resolve_model

HALVES: tuple[Half, Half] = ("first", "second")


def train(config: RerankTraining) -> RerankGuesser:
    """The guesser with the published counts; `config.work` gets the one for training buzzers."""
    knowledge = knowledge_of(config.learnt, config.least)
    first, second = (read(knowledge, config, half) for half in HALVES)
    RerankGuesser(knowledge, fitted(config, first), config.learnt.model).save(config.work)
    return RerankGuesser(
        knowledge_of(config.published, config.least), fitted(config, [*first, *second]), config.published.model
    )


def read(knowledge: Knowledge, config: RerankTraining, half: Half) -> list[Lesson]:
    """What the texts of a half of the fold teach; those without an indexed word are left out."""
    whole = tossups_of(["buzzer"], half)
    unchanged = whole[: config.limit]
    corrupted = corrupt(unchanged, config.noise) if config.noise else []
    texts = [*unchanged, *corrupted, *translations(config.translated, whole)]
    if len(texts) < KEPT_BACK:
        raise DataError(f"{config.output}: {len(texts)} texts of the {half} half to learn from; raise limit")
    bar = tqdm(texts, f"guessing, {half} half", mininterval=2)
    lessons_of = [lesson_of_text(knowledge, text, number, config) for number, text in enumerate(bar)]
    taught = [lesson for lesson in lessons_of if len(lesson.target)]
    return [*taught, *(at_last_word(lesson) for lesson in lessons_of[: len(unchanged)] if len(lesson.target))]


def at_last_word(lesson: Lesson) -> Lesson:
    """A lesson's last step alone."""
    rows = np.flatnonzero(lesson.step == len(lesson.target) - 1)
    return Lesson(lesson.rows[rows], np.zeros(len(rows), np.int64), np.searchsorted(rows, lesson.target[-1:]))


def knowledge_of(counts: Counts, least: int) -> Knowledge:
    """Some counts with the kinds of what they counted.  DataError if a lesson is of a page that they lack."""
    index = Index.load(resolve_model(counts.model))
    taught = lessons(counts.folds, counts.bonus)
    if lacking := {lesson.page for lesson in taught} - set(index.titles):
        raise DataError(
            f"{counts.model}: lacks {len(lacking)} pages of its folds, {min(map(str, lacking))!r} for one; "
            "count them again"
        )
    return Knowledge(index, Kinds.of(taught, index.titles, least))


def lesson_of_text(knowledge: Knowledge, text: Tossup, number: int, config: RerankTraining) -> Lesson:
    """The candidates at the last word of a text and at `points` - 1 others, drawn at random."""
    words = text.text.split()
    ends = drawn_ends(len(words), config.points, config.seed, number)
    described = candidates(knowledge, words, ends)
    answer = key(text.page) if text.page is not None else None
    right = [key(knowledge.titles[page]) == answer for page in described.pages.tolist()]
    return lesson_of(described.rows, described.step, np.array(right, np.bool_))
