"""Intervals and p-values: closed forms, determinism, and what they say about planted differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from sqa.core.differences import bootstrap_band, compare, compare_many
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.significance import bca, bootstrap, bootstrap_many, bootstrap_weights
from sqa.metrics import build

[ACCURACY, BLEU, DAL] = build(["accuracy", "bleu", "dal"])


def means(values):
    """Statistics of a mean: (n, 2)."""
    return np.column_stack([values, np.ones(len(values))])


def test_many_metrics_give_what_each_gives_alone():
    rng = np.random.default_rng(5)
    first, second = means(rng.random(40)), np.column_stack([rng.random((40, 2)) + 1, np.zeros(40)])
    together = bootstrap_many([first, second], [ACCURACY, DAL])
    for got, alone in zip(together, [bootstrap(first, ACCURACY), bootstrap(second, DAL)], strict=True):
        assert (got.value, got.low, got.high) == pytest.approx((alone.value, alone.low, alone.high), rel=1e-12)


def test_one_question_has_a_point_for_an_interval():
    interval = bootstrap(means([0.25]), ACCURACY)
    assert (interval.low, interval.value, interval.high) == (0.25, 0.25, 0.25)


def test_undefined_resamples_are_counted():
    stats = np.array([[3.0, 1, 0], [0, 0, 1]])  # one question of two has no latency
    interval = bootstrap(stats, DAL, n_resamples=1000)
    assert interval.value == 3 and interval.low == interval.high == 3
    assert 180 < interval.undefined < 320  # one resample in four
    with pytest.raises(NotComputable, match="dal"):
        bootstrap(stats[1:], DAL)


def test_bca_is_scipys_on_the_same_resamples():
    """scipy.stats.bootstrap, method BCa, of a skewed mean and of a ratio of sums."""
    rng = np.random.default_rng(11)
    wins, words = (rng.random(60) < 0.1) * rng.random(60), rng.lognormal(size=60)
    for stats, metric in ((means(wins), ACCURACY), (np.column_stack([wins, words]), ACCURACY)):

        def value(x, y, axis):
            return x.sum(axis=axis) / y.sum(axis=axis)

        theirs = scipy.stats.bootstrap(tuple(stats.T), value, paired=True, n_resamples=20000, method="BCa", rng=rng)
        point = metric.score(stats.sum(axis=0))
        without = metric.score_many(stats.sum(axis=0) - stats)
        ends = bca(point, theirs.bootstrap_distribution, without)
        assert ends == pytest.approx(tuple(theirs.confidence_interval), rel=1e-3)
        ours = bootstrap(stats, metric, n_resamples=20000)  # of other resamples
        low, high = theirs.confidence_interval
        assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.03 * (high - low))


def test_the_interval_of_bleu_is_bca_with_each_question_left_out():
    rng = np.random.default_rng(12)
    counts = rng.integers(1, 9, size=(12, 4))
    stats = np.column_stack([counts.sum(1) + 9, counts.sum(1) + 9, counts, counts + 5, np.ones(12)]).astype(float)
    without = np.array([BLEU.score(np.delete(stats, i, axis=0).sum(axis=0)) for i in range(12)])
    samples = BLEU.score_many(np.concatenate(list(bootstrap_weights(12, 1000, 0))) @ stats)
    interval = bootstrap(stats, BLEU)
    assert (interval.low, interval.high) == pytest.approx(bca(interval.value, samples, without))
    assert (interval.low, interval.high) != pytest.approx(tuple(np.percentile(samples, [2.5, 97.5])))


def test_bca_where_little_is_defined():
    nan, ends = np.nan, np.array([-1.0, 0.0, 1.0])
    assert bca(0.3, np.full(9, 0.3), np.full(3, 0.3)) == (0.3, 0.3)
    assert np.isnan(bca(0.3, np.full(9, nan), ends)).all()
    assert bca(0.0, np.append(np.linspace(-1, 1, 999), nan), np.append(ends, nan)) == bca(
        0.0, np.linspace(-1, 1, 999), ends, 0.95
    )
    assert bca(0.0, np.linspace(-1, 1, 999), np.full(3, nan)) == bca(0.0, np.linspace(-1, 1, 999), ends)
    for outside in (-5.0, 5.0):  # of all resamples
        low, high = bca(outside, np.linspace(-1, 1, 999), ends)
        assert -1 <= low <= high <= 1 and low * outside > 0
    far = np.append(np.zeros(99), 1.0)  # as skew as can be: the pole of the acceleration
    assert bca(-5.0, np.linspace(-1, 1, 9999), far, 0.999999) == (-1.0, pytest.approx(-0.99, abs=0.02))
    assert bca(5.0, np.linspace(-1, 1, 9999), -far, 0.999999) == (pytest.approx(0.99, abs=0.02), 1.0)


def test_a_system_against_itself():
    stats = means(np.random.default_rng(6).random(80))
    comparison = compare(stats, stats, ACCURACY)
    assert comparison.diff == 0 and comparison.p_bootstrap == 1 and comparison.p_randomization == 1


def test_a_constant_gain_is_certain():
    values = np.random.default_rng(7).random(60)
    comparison = compare(means(values + 0.1), means(values), ACCURACY, n_resamples=999)
    assert comparison.diff == pytest.approx(0.1)
    assert (comparison.low, comparison.high) == pytest.approx((0.1, 0.1))
    assert comparison.p_bootstrap == pytest.approx(1 / 1000) and comparison.p_randomization == pytest.approx(1 / 1000)


def test_randomisation_agrees_with_the_exact_test():
    """5 questions where only a is right, 1 where only b is: the exact sign test gives 2 * 7 / 64."""
    a, b = means([1.0] * 5 + [0.0] + [1.0] * 20), means([0.0] * 5 + [1.0] + [1.0] * 20)
    comparison = compare(a, b, ACCURACY, n_resamples=20000)
    assert comparison.p_randomization == pytest.approx(14 / 64, abs=0.01)


def test_intervals_and_both_p_values_follow_the_seed():
    rng = np.random.default_rng(9)
    a, b = means(rng.random(40) + 0.05), means(rng.random(40))
    first, again, other = (compare(a, b, ACCURACY, n_resamples=999, seed=seed) for seed in (1, 1, 2))
    assert first == again and (first.a, first.b, first.diff) == (other.a, other.b, other.diff)
    for name in ("low", "high", "p_bootstrap", "p_randomization"):
        assert getattr(first, name) != getattr(other, name), name
    assert bootstrap(a, ACCURACY, seed=1) == bootstrap(a, ACCURACY, seed=1) != bootstrap(a, ACCURACY, seed=2)


def test_exchanging_the_systems_changes_the_sign_only():
    rng = np.random.default_rng(8)
    a, b = means(rng.random(50)), means(rng.random(50))
    ab, ba = compare(a, b, ACCURACY), compare(b, a, ACCURACY)
    assert (ab.diff, ab.low, ab.high) == pytest.approx((-ba.diff, -ba.high, -ba.low))
    assert ab.p_bootstrap == ba.p_bootstrap and ab.p_randomization == ba.p_randomization


def test_false_alarms_are_as_rare_as_promised():
    """Two systems of equal skill, 200 times: about 5% of p-values are below .05."""
    rng = np.random.default_rng(9)
    pairs = [(means(rng.random(60)), means(rng.random(60))) for _ in range(200)]
    comparisons = compare_many(pairs, [ACCURACY] * 200, n_resamples=500)
    for p in ([c.p_bootstrap for c in comparisons], [c.p_randomization for c in comparisons]):
        assert np.mean(np.array(p) < 0.05) < 0.11


class Bins:
    """Two bins, of which a question may have no step in one: sums, then counts."""

    def score_many(self, stats):
        return np.divide(stats[:, :2], stats[:, 2:], out=np.full((len(stats), 2), np.nan), where=stats[:, 2:] > 0)


def test_band_has_one_interval_per_bin():
    stats = np.array([[-4.0, 0, 1, 0], [-2.0, 0, 1, 0], [0.0, 0, 1, 0]])
    band = bootstrap_band(stats, Bins())
    assert band.value[0] == pytest.approx(-2) and band.low[0] < -2 < band.high[0]
    assert np.isnan([band.value[1], band.low[1], band.high[1]]).all()


@pytest.mark.parametrize(
    "call,error",
    [
        (lambda: bootstrap(means([]), ACCURACY), DataError),
        (lambda: bootstrap(means([1.0]), ACCURACY, n_resamples=0), ConfigError),
        (lambda: compare(means([1.0]), means([1.0, 2.0]), ACCURACY), DataError),
        (lambda: compare(means([1.0]), np.ones((1, 3)), ACCURACY), DataError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()
