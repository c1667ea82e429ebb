"""Exact match and F1, computed by hand from the official rule and compared with transformers' implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tables import tables_of
from transformers.data.metrics import squad_metrics

from sqa.core import DataError, NotComputable, bootstrap
from sqa.metrics.short_answers import LanguageMean, by_language, exact_match, f1, normalise, says

TABLES = tables_of(__file__)

# (answer, correct answers, EM, F1), by hand from evals/eval_xor_engspan.py of github.com/AkariAsai/XORQA at 7ad88d92
GOLDEN = TABLES["golden"]
TEXTS = st.lists(
    st.sampled_from("the a an Rome rome's 1,500 14 March-April – «Pravda» yes . ?! İstanbul ΣΑΣ".split()), max_size=6
).map(" ".join)


@pytest.mark.parametrize(("answer", "right", "em", "score"), GOLDEN)
def test_scores_equal_hand_computed_values(answer, right, em, score):
    assert exact_match(answer, right) == em
    assert f1(answer, right) == pytest.approx(score, abs=1e-12)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_f1_equals_transformers(answer, right):
    """transformers follows SQuAD 2.0, which differs only if both texts are empty once normalised."""
    assert exact_match(answer, right) == max(squad_metrics.compute_exact(gold, answer) for gold in right)
    with_words = [gold for gold in right if normalise(gold) or normalise(answer)]
    if with_words:
        theirs = max(squad_metrics.compute_f1(gold, answer) for gold in with_words)
        assert f1(answer, with_words) == pytest.approx(theirs, abs=1e-12)


def test_answer_occurs_in_a_text_as_whole_words():
    assert says("He died in London, at the Denville Hall.", ["Denville hall"])
    assert not says("Londoners", ["London"])
    assert not says("anything", ["the"])  # the normalised answer is empty
    assert says("one two three", ["x", "two three"])


@pytest.mark.parametrize("rule", [exact_match, f1, says])
def test_empty_correct_answers_are_refused(rule):
    refused(DataError, "at least one right answer", rule, "x", [])


def test_languages_have_equal_weight():
    stats = by_language([1, 0, 0, 1, float("nan")], ["ru", "ru", "ru", "fi", "fi"])
    assert stats.tolist() == [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]]
    rule = LanguageMean("em")
    assert rule.score(stats.sum(axis=0)) == pytest.approx((1 + 1 / 3) / 2)
    sums = np.stack([stats.sum(axis=0), [0, 0, 1, 2]])
    assert rule.score_many(sums) == pytest.approx([2 / 3, np.nan], nan_ok=True)
    refused(NotComputable, "a language has no questions", rule.score, sums[1])


def test_interval_of_one_language_is_that_of_a_mean():
    values = np.random.default_rng(0).random(40)
    interval = bootstrap(by_language(values.tolist(), ["fi"] * 40), LanguageMean("f1"), 500)
    assert interval.value == pytest.approx(values.mean())
    assert interval.low < interval.value < interval.high
