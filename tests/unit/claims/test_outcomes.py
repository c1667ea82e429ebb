"""Explained variance and numbers of questions, on planted data."""

import numpy as np
import pytest
from scipy.stats import norm

from experiments.studies import outcomes


def test_r2_is_1_only_for_a_sum_of_the_predictors():
    rng = np.random.default_rng(0)
    predictors, other = rng.normal(size=(40, 2)), rng.normal(size=40)
    r2, rest = outcomes.explained(predictors @ [0.3, -0.01] + 0.2, predictors)
    assert r2 == pytest.approx(1.0) and rest == pytest.approx(0.0, abs=1e-9)
    assert outcomes.explained(other, predictors)[0] < 0.2


def test_the_needed_questions_give_power_of_80_percent():
    rng = np.random.default_rng(0)
    gaps = rng.normal(0.05, 0.3, size=2000)
    number = round(outcomes.needed(np.column_stack([gaps, np.ones(2000)]), np.column_stack([gaps * 0, np.ones(2000)])))
    samples = rng.choice(gaps, size=(4000, number))
    found = samples.mean(axis=1) / samples.std(axis=1, ddof=1) * np.sqrt(number) > norm.ppf(0.975)
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_equal_systems_need_infinitely_many_questions():
    table = np.ones((5, 2))
    assert outcomes.needed(table, table) == float("inf")
