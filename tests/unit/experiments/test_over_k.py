"""Claims over k on generated questions: planted effects are found and chance effects are not."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiments.over_k import LATER, POOLED, OverK, all_series, difference, differences
from sqa.core import compare, holm, null_of, p_value, permuted_sums
from sqa.metrics import build

KS = (3, 6, 9, 12, 15, "full")
[EW] = build(["ew"])


def means(values: np.ndarray) -> np.ndarray:
    """Convert values of shape (n, K) to statistics of shape (n, K, 2) whose score is the mean over the questions."""
    return np.stack([values, np.ones_like(values)], axis=2)


def series(ew: list[float], oracle: list[float] | None = None, n: int = 300, seed: int = 1, ks=KS) -> OverK:
    """Return a series of random questions, where `ew` shifts EW at each k and `oracle` shifts oracle EW minus EW."""
    rng = np.random.default_rng(seed)
    tables = {"ew": rng.normal(0.3, 0.2, (n, 1)) + rng.normal(ew, 0.1, (n, len(ew)))}
    tables["oracle-ew"] = tables["ew"] + rng.normal(oracle or [0.0] * len(ew), 0.1, (n, len(ew)))
    return OverK("es", "wait-k", "bm25", ks, ({name: means(values) for name, values in tables.items()},))


FLAT = [0.0] * 6
HUMP = [0.0, 0.03, 0.06, 0.06, 0.03, 0.0]
FALLING = [0.2, 0.16, 0.12, 0.08, 0.04, 0.0]
RISING = FALLING[::-1]


@pytest.mark.parametrize(("ew", "rises", "falls"), [(FALLING, False, True), (RISING, True, False)])
def test_planted_effects_are_found_and_no_others(ew: list[float], rises: bool, falls: bool) -> None:
    of = series(ew)
    gaps = {row.cell[3]: row for row in differences(of)}
    assert (gaps["rise"].low > 0 or not rises) and (gaps["fall"].low > 0 or not falls)
    assert not gaps["rise"].cell[4].startswith("k = 3 ")  # nothing can rise at the smallest k


def test_too_few_k_yield_no_claim() -> None:
    short = series([0.0, 0.1], ks=(3, 6))
    assert not list(differences(short))  # EW and oracle EW have the same optimal k, so the difference is 0
    assert {row.cell[3] for row in differences(series([0.0, 0.1, 0.0], ks=(3, 6, 9)))} == {"rise", "oracle rise"}
    apart = series([0.0, 0.1, 0.0], ks=(3, 6, 9), oracle=[0.3, 0.0, 0.0])
    assert {row.cell[3]: row.cell[4] for row in differences(apart)}[LATER] == "k = 6 minus k = 3"


def test_pooled_ladders_have_equal_weight() -> None:
    config = SimpleNamespace(quality=(), metrics=())
    rows = [
        SimpleNamespace(
            cell=SimpleNamespace(dataset=dataset, family=family, contestant="bm25", k=k, seed=None, config=config),
            saved=SimpleNamespace(config=config),
            stats={name: table[:, index] for name, table in series(ew, n=n).parts[0].items()},
        )
        for dataset, ew, n, family in (("es", HUMP, 50, "a"), ("pl", FLAT, 200, "a"), ("es", FLAT, 50, "b"))
        for index, k in enumerate(KS)
    ]
    results = {one[:2]: one for one in all_series(rows)}
    assert set(results) == {("es", "a"), ("pl", "a"), ("es", "b"), (POOLED, "a")}
    mean = (results["es", "a"].scores("ew") + results["pl", "a"].scores("ew")) / 2
    pooled = results[POOLED, "a"]
    assert pooled.scores("ew") == pytest.approx(mean)
    assert difference(pooled, "", "ew", 2, 5).value == pytest.approx(mean[2] - mean[5])


def test_holm_equals_hand_computed_values() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_p_of_two_k_equals_the_randomisation_test() -> None:
    rng = np.random.default_rng(0)
    values = means(rng.normal([0.0, 0.02], 0.1, (150, 2)))
    null = null_of(values, lambda sums: EW.score_many(sums[:, 0]) - EW.score_many(sums[:, 1]), 4999, 0)[:, None]
    gap = compare(values[:, 0], values[:, 1], EW, 4999)
    assert 2 * p_value(-np.abs([gap.diff]) * -1, null)[0] == pytest.approx(gap.p, abs=0.02)


def test_questions_with_equal_values_also_count() -> None:
    table = np.random.default_rng(0).random((7, 4, 3))
    table[2] = table[2, :1]
    [sums] = permuted_sums(table, 50, 1)
    assert np.allclose(sums.sum(axis=1), table.sum(axis=(0, 1)))
