"""The study of word order, with a tiny language model and a tiny index."""

from collections import namedtuple

import numpy as np
import pytest
from stand_ins.lm_models import make

from experiments.validity import damage, word_order
from guessers.llm.base import BaseConfig
from guessers.retrieval.counting import fit
from sqa.data.datasets import load_questions

SHUFFLED = "shuffled within sentences"
Lesson = namedtuple("Lesson", "id text page")


@pytest.fixture(scope="module")
def questions():
    return load_questions("mini-es", 6)


@pytest.fixture(scope="module")
def base(tmp_path_factory, questions):
    model, index = make(tmp_path_factory.mktemp("gemma"), "gemma3_text"), tmp_path_factory.mktemp("index")
    fit([Lesson(str(i), q.reference_text, q.page) for i, q in enumerate(questions)], 1).save(index)
    return BaseConfig(base=str(model), retrieval=str(index), candidates=6, dtype="float32")


@pytest.fixture(scope="module")
def groups(questions):
    return {group: texts for group, texts in damage.texts(questions).items() if group in word_order.GROUPS}


def test_order_affects_the_model_but_not_retrieval(tmp_path, base, questions, groups):
    texts = word_order.asked(word_order.guesser_of(tmp_path, base=base), questions, groups)
    readers = {name: word_order.fit(texts[damage.INTACT], used) for name, used in word_order.USED.items()}
    table = word_order.measured(tmp_path, questions, groups, readers, base)
    intact, shuffled = (table[word_order.RETRIEVAL, "accuracy", group] for group in (damage.INTACT, SHUFFLED))
    assert intact.all() and shuffled.all()
    for reader, metric in ((word_order.MODEL, "nats"), (word_order.TEXT, word_order.PER_WORD)):
        intact, shuffled = (table[reader, metric, group] for group in (damage.INTACT, SHUFFLED))
        assert (intact != shuffled).all()
    found = {row.key: row for row in word_order.rows("mini-es", table)}
    change = found["mini-es", word_order.MODEL, SHUFFLED, "change", "nats"]
    excess = found["mini-es", word_order.MODEL, SHUFFLED, "excess", "nats"]
    assert change.value == pytest.approx(excess.value) != 0  # retrieval does not change, so nothing is subtracted
    assert ("mini-es", word_order.RETRIEVAL, SHUFFLED, "effect", "accuracy") not in found


def test_stopped_reading_resumes_with_stored_replies(tmp_path, base, questions, groups):
    first = word_order.asked(word_order.guesser_of(tmp_path, base=base), questions, groups)
    again = word_order.guesser_of(tmp_path, base=base)
    assert word_order.asked(again, questions, groups) and again.chat.chat.budget.spent == 0
    assert [len(each.replies) for each in first[SHUFFLED]] == [len(q.sentences) for q in questions]
    assert {len(each.replies) for each in first["negated"]} == {1}


def test_effect_is_in_standard_deviations():
    [row] = word_order.effect((), "ew", np.array([1.0, 1.0, 1.0, -1.0]))
    assert row.value == pytest.approx(0.5 / 0.75**0.5) and row.low <= row.value <= row.high
