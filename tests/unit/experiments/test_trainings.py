"""Trainings compared: closed forms, and the variance of trainings beside that of questions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refused

from experiments.ablation.seeds import compare_trainings
from experiments.grid import CONTINUED, SEPARATE
from experiments.items import training
from experiments.lab.tables import DEVIATION
from smt.training.sweep import MULTI
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


def test_one_training_at_two_k_is_drawn_on_both_sides_together() -> None:
    questions = np.random.default_rng(0).random(400)
    below = [means(questions + shift) for shift in (-0.2, 0.0, 0.2)]
    above = [means(questions + shift + 0.1) for shift in (-0.2, 0.0, 0.2)]
    apart, together = (compare_trainings(above, below, ACCURACY, same=same) for same in (False, True))
    assert apart.value == pytest.approx(together.value) == pytest.approx(0.1)
    assert apart.low < 0 < together.low and together.high - together.low < 1e-9
    refused(DataError, "the same trainings on both", compare_trainings, above, below[:2], ACCURACY, same=True)


def test_a_sweep_is_shown_by_mean_and_deviation_over_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [(MULTI, {3: 10.0}), (MULTI, {3: 12.0}), (3, {3: 20.0}), (3, {3: 26.0})]
    finished = [SimpleNamespace(k=k, bleu=bleu) for k, bleu in runs]
    monkeypatch.setattr(training, "finished", lambda folder: finished if folder.name == "sweep-pl-en" else [])
    rows = [(*row.cell, row.metric, row.value, row.n) for row in training.development(Path(), Path())]
    assert rows == [
        ("Polish", CONTINUED, "3", "bleu", 11.0, 2),
        ("Polish", CONTINUED, "3", "bleu" + DEVIATION, pytest.approx(2**0.5), 2),
        ("Polish", SEPARATE, "3", "bleu", 23.0, 2),
        ("Polish", SEPARATE, "3", "bleu" + DEVIATION, pytest.approx(18**0.5), 2),
    ]
