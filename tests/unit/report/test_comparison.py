"""The matrix of many runs, compared with exact results: every swap enumerated, Holm step by step."""

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from small_runs import small_run

from sqa.pipeline import folder as runs
from sqa.pipeline import saving
from sqa.report import data as comparison

NAMES = ("a", "b_2", "c")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> list[runs.RunFolder]:
    """Return three runs on eight questions with lags of 0, 2 and 3 words; the last never guesses one of two answers."""
    folder = tmp_path_factory.mktemp("runs")
    saved = []
    for name, k, pages in zip(NAMES, (1, 3, 4), (("France", "Spain"),) * 2 + (("France",),), strict=True):
        translator = {"name": "doubles:build_translator", "k": k}
        guesser = {"name": "doubles:build_guesser", "pages": list(pages)}
        parts = {"translator": translator, "guesser": guesser, "buzzer": None, "metrics": ["al", "accuracy", "mrr"]}
        saved.append(runs.read(saving.save(small_run(folder, 8, name=name, **parts), folder / "out")))
    return saved


@pytest.fixture(scope="module")
def compared(opened: list[runs.RunFolder]) -> list[SimpleNamespace]:
    table, notes = comparison.compare_all(opened, ["al", "accuracy"], resamples=20000)
    assert notes == []
    return [SimpleNamespace(**row) for row in table.to_objects()]


def exact(a: np.ndarray, b: np.ndarray) -> float:
    """Return the two-sided p of the difference of two ratios of sums, over all 2^n swaps of questions."""
    observed = abs(a.sum(0)[0] / a.sum(0)[1] - b.sum(0)[0] / b.sum(0)[1])
    as_large = 0
    for swaps in product((False, True), repeat=len(a)):
        swapped = np.array(swaps)[:, None]
        x, y = np.where(swapped, b, a).sum(0), np.where(swapped, a, b).sum(0)
        as_large += abs(x[0] / x[1] - y[0] / y[1]) >= observed - 1e-12
    return as_large / 2 ** len(a)


def test_matrix_equals_exact_tests(opened, compared):
    assert [(pair.metric, pair.run_a, pair.run_b) for pair in compared] == [
        (metric, *two) for metric in ("al", "accuracy") for two in combinations(NAMES, 2)
    ]
    stats = {run.folder.name: run.stats for run in opened}
    for metric in ("al", "accuracy"):
        of_metric = [pair for pair in compared if pair.metric == metric]
        by_hand = [exact(stats[pair.run_a][metric][:, :2], stats[pair.run_b][metric][:, :2]) for pair in of_metric]
        assert [pair.p for pair in of_metric] == pytest.approx(by_hand, abs=0.012)
        for pair in of_metric:
            x, y = stats[pair.run_a][metric].sum(0), stats[pair.run_b][metric].sum(0)
            assert pair.diff == pytest.approx(x[0] / x[1] - y[0] / y[1])
        # Holm: the smallest of three p-values times 3, the next times 2, the last times 1, made monotone
        first, second, third = sorted(of_metric, key=lambda pair: pair.p)
        least = min(1.0, 3 * first.p)
        middle = max(least, min(1.0, 2 * second.p))
        adjusted = [least, middle, max(middle, third.p)]
        assert [pair.p_holm for pair in (first, second, third)] == pytest.approx(adjusted)
    assert all(pair.p_holm < 0.05 for pair in compared[:3])  # every question waits longer
    assert compared[3].p == compared[3].p_holm == 1.0  # equal answers
