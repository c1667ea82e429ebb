"""Trainings compared: closed forms, and the variance of trainings beside that of questions."""

import numpy as np
import pytest
from refusals import refused

from experiments.studies.training import compare_trainings
from sqa.core.errors import DataError
from sqa.metrics import build

[ACCURACY] = build(["accuracy"])


def means(values: list[float]) -> np.ndarray:
    return np.column_stack([values, np.ones(len(values))])


def test_the_variance_of_trainings_widens_the_interval() -> None:
    rng = np.random.default_rng(0)
    questions = rng.random(400)
    equal = [means(questions)] * 3
    spread = [means(questions + shift) for shift in (-0.2, 0.0, 0.2)]
    base = [means(questions - 0.1)] * 3
    narrow, wide = compare_trainings(equal, base, ACCURACY), compare_trainings(spread, base, ACCURACY)
    assert narrow.value == pytest.approx(wide.value) == pytest.approx(0.1)
    assert narrow.high - narrow.low < 1e-9  # the same questions on both sides: nothing else varies
    assert wide.low < 0 < narrow.low and wide.high > 0.2


def test_one_training_against_itself() -> None:
    values = means([1.0] * 30 + [0.0] * 70)
    same = compare_trainings([values], [values], ACCURACY, resamples=200)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    refused(DataError, r"got \(100, 2\), \(2, 2\)", compare_trainings, [values], [means([1, 0])], ACCURACY)
    refused(DataError, "accuracy: expected trainings of two systems", compare_trainings, [values], [], ACCURACY)


def test_one_training_at_two_k_is_resampled_jointly() -> None:
    questions = np.random.default_rng(0).random(400)
    below = [means(questions + shift) for shift in (-0.2, 0.0, 0.2)]
    above = [means(questions + shift + 0.1) for shift in (-0.2, 0.0, 0.2)]
    apart, together = (compare_trainings(above, below, ACCURACY, same=same) for same in (False, True))
    assert apart.value == pytest.approx(together.value) == pytest.approx(0.1)
    assert apart.low < 0 < together.low and together.high - together.low < 1e-9
