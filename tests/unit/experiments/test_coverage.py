"""What the intervals cover where hardly any question wins, and where two systems differ on few."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.ablation.coverage import LEVEL, POPULATIONS, covered, main, wins
from sqa.core.significance import bootstrap, compare
from sqa.metrics import build

TRIALS = 2000
BAND = 3 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)  # three deviations of a share of trials


@pytest.mark.parametrize("one", POPULATIONS, ids=lambda one: f"{one.what}, {one.questions}")
def test_the_kind_of_interval_that_is_used_covers_more_or_as_much(one):
    percentile, bca = covered(one, TRIALS)
    used, other = (bca, percentile) if one.used == "bca" else (percentile, bca)
    assert abs(used - LEVEL) < 0.025
    assert used >= other - 0.005


def test_bca_covers_a_mean_of_many_zeros_and_the_percentile_interval_does_not():
    percentile, bca = covered(POPULATIONS[0], TRIALS)
    assert abs(bca - LEVEL) < BAND < LEVEL - percentile and bca > percentile + 0.01


def test_a_run_has_bca_and_a_comparison_percentiles():
    [ew] = build(["ew"])
    values = wins(0.05)(np.random.default_rng(2), (1, 147))[0]
    stats, nothing = np.column_stack([values, np.ones(147)]), np.column_stack([np.zeros(147), np.ones(147)])
    alone, against_nothing = bootstrap(stats, ew), compare(stats, nothing, ew)
    assert alone.value == against_nothing.diff
    assert alone.low > against_nothing.low and alone.high > against_nothing.high  # moved to where the tail is


def test_the_table(capsys):
    main(trials=3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["what", "questions", "truth", "percentile", "bca", "used"]
    assert len(lines) == 1 + len(POPULATIONS)
