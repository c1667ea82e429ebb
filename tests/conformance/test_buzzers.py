"""The contract of every registered buzzer."""

import math

import numpy as np
import pytest

from sqa.core import BUZZERS, GUESSERS, Guess
from sqa.data.datasets import load_questions

PAGE = "Spain"


def decide(buzzer, history):
    if getattr(buzzer, "oracle", False):
        return buzzer.decide_with_answer(history, PAGE)
    return buzzer.decide(history)


@pytest.fixture(scope="module", params=BUZZERS.names())
def buzzer(request):
    return BUZZERS.build(request.param, BUZZERS.config_class(request.param)())


@pytest.fixture(scope="module")
def histories():
    """Return the guesses for two questions, and made-up guesses: none, one, many, ties."""
    guesser = GUESSERS.build("bm25", GUESSERS.config_class("bm25")())
    real = [guesser.guess_prefixes(q.reference_text.split(), 50) for q in load_questions("mini-en", limit=2)]
    one = [Guess(PAGE, 3.0)]
    many = [Guess(PAGE, 9.0), *(Guess(f"p{i}", 1.0) for i in range(20))]
    return [*real, [[], one, [], many, many], [[]], [[Guess("a", 0.0), Guess("b", 0.0)]]]


def test_one_finite_buzz_per_step(buzzer, histories):
    for history in histories:
        buzzes = decide(buzzer, history)
        assert len(buzzes) == len(history)
        assert all(math.isfinite(buzz.score) and isinstance(buzz.buzz, bool) for buzz in buzzes)
    assert decide(buzzer, []) == []


def test_buzz_depends_only_on_the_guesses_so_far(buzzer, histories):
    for history in histories:
        whole = decide(buzzer, history)
        for end in range(1, len(history) + 1, 7):
            assert decide(buzzer, history[:end]) == whole[:end]


def test_deciding_is_repeatable_and_needs_a_guess(buzzer, histories):
    assert [buzz.buzz for buzz in decide(buzzer, [[], [], []])] == [False, False, False]
    assert [decide(buzzer, history) for history in histories] == [decide(buzzer, history) for history in histories]


@pytest.mark.parametrize("kind", ["logistic", "mlp", "recurrent"])
@pytest.mark.parametrize("model", ["bm25", "gru"])
def test_every_bundled_guesser_has_its_buzzers(kind, model, histories):
    buzzer = BUZZERS.build(kind, BUZZERS.config_class(kind)(model=model))
    scores = np.array([buzz.score for buzz in buzzer.decide(histories[0])])
    assert ((0 <= scores) & (scores <= 1)).all() and len(set(scores)) > 10
