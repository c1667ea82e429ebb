"""Intervals and p-values: closed forms, scipy's values, determinism."""

import numpy as np
import pytest
from refusals import refused

from sqa.core import ConfigError, DataError, NotComputable
from sqa.core.differences import compare, compare_levels, compare_pooled, interval_over_levels
from sqa.core.significance import (
    bca,
    bootstrap,
    bootstrap_band,
    bootstrap_many,
    bootstrap_weights,
    means,
    t_quantile,
    t_two_sided,
)
from sqa.metrics import build

[ACCURACY, BLEU, DAL] = build(["accuracy", "bleu", "dal"])


def test_joint_bootstrap_equals_separate_bootstraps():
    rng = np.random.default_rng(5)
    first, second = means(rng.random(40)), np.column_stack([rng.random((40, 2)) + 1, np.zeros(40)])
    together = bootstrap_many([first, second], [ACCURACY, DAL])
    for got, alone in zip(together, [bootstrap(first, ACCURACY), bootstrap(second, DAL)], strict=True):
        assert (got.value, got.low, got.high) == pytest.approx((alone.value, alone.low, alone.high), rel=1e-12)


def test_undefined_resamples_are_excluded():
    stats = np.array([[3.0, 1, 0], [0, 0, 1]])  # one of two questions has no latency
    interval = bootstrap(stats, DAL, n_resamples=1000)
    assert interval.value == interval.low == interval.high == 3
    refused(NotComputable, "dal", bootstrap, stats[1:], DAL)


def test_bca_equals_scipy_on_the_same_resamples():
    """Compare with scipy.stats.bootstrap (method BCa) for the mean of a skewed sample and for a ratio of sums."""
    import scipy.stats

    rng = np.random.default_rng(11)
    wins, words = (rng.random(60) < 0.1) * rng.random(60), rng.lognormal(size=60)

    def value(x, y, axis):
        return x.sum(axis=axis) / y.sum(axis=axis)

    for stats in (means(wins), np.column_stack([wins, words])):
        theirs = scipy.stats.bootstrap(tuple(stats.T), value, paired=True, n_resamples=20000, method="BCa", rng=rng)
        without = ACCURACY.score_many(stats.sum(axis=0) - stats)
        low, high = bca(ACCURACY.score(stats.sum(axis=0)), theirs.bootstrap_distribution, without)
        assert (low, high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-3)
        ours = bootstrap(stats, ACCURACY, n_resamples=20000)  # with other resamples
        assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.03 * (high - low))


def test_bleu_interval_is_bca_with_jackknife():
    counts = np.random.default_rng(12).integers(1, 9, size=(24, 4))
    stats = np.column_stack([counts.sum(1) + 9, counts.sum(1) + 9, counts, counts + 5, np.ones(24)]).astype(float)
    without = np.array([BLEU.score(np.delete(stats, i, axis=0).sum(axis=0)) for i in range(24)])
    samples = BLEU.score_many(np.concatenate(list(bootstrap_weights(24, 1000, 0))) @ stats)
    interval = bootstrap(stats, BLEU)
    assert (interval.low, interval.high) == pytest.approx(bca(interval.value, samples, without))


def test_bca_handles_few_defined_values():
    nan, ends, even = np.nan, np.array([-1.0, 0.0, 1.0]), np.linspace(-1, 1, 999)
    assert bca(0.3, np.full(9, 0.3), np.full(3, 0.3)) == (0.3, 0.3)
    assert np.isnan(bca(0.3, np.full(9, nan), ends)).all()
    assert bca(0.0, np.append(even, nan), np.append(ends, nan)) == bca(0.0, even, ends)
    assert bca(0.0, even, np.full(3, nan)) == bca(0.0, even, ends)
    far = np.append(np.zeros(99), 1.0)  # maximal skewness, where the acceleration has a pole
    assert bca(-5.0, np.linspace(-1, 1, 9999), far, 0.999999) == (-1.0, pytest.approx(-0.99, abs=0.02))


def test_p_is_1_for_equal_and_small_for_better_systems():
    values = np.random.default_rng(7).random(60)
    same = compare(means(values), means(values), ACCURACY)
    assert same.diff == 0 and same.p == 1 and (same.low, same.high) == (-np.inf, np.inf)  # no question differs
    gain = compare(means(values + 0.1), means(values), ACCURACY, n_resamples=999)
    assert (gain.diff, gain.low, gain.high) == pytest.approx((0.1, 0.1, 0.1))
    assert gain.p == pytest.approx(1 / 1000)


def test_interval_is_the_inverse_of_the_test():
    """A shift of b by either end of the interval has a p-value of about .05, and shifts beyond it a smaller one."""
    rng = np.random.default_rng(5)
    a, b = rng.random(30) + 0.2, rng.random(30)
    whole = compare(means(a), means(b), ACCURACY, n_resamples=4999)
    for end, outward in ((whole.low, -1), (whole.high, 1)):
        beyond, inside = (
            compare(means(a), means(b + end + step), ACCURACY, 4999) for step in (outward * 1e-6, -outward * 1e-6)
        )
        assert beyond.p <= 0.05 < inside.p < 0.0505


def test_few_differing_questions_bound_nothing():
    b = np.zeros(50)
    five, six = (compare(means(np.where(np.arange(50) < k, 0.5, b)), means(b), ACCURACY) for k in (5, 6))
    assert (five.low, five.high) == (-np.inf, np.inf) and five.p >= 1 / 16
    assert 0 < six.low < six.diff < six.high and six.p <= 0.05


def test_t_matches_published_quantiles():
    published = {1: 12.7062, 2: 4.30265, 4: 2.77645, 10: 2.22814, 146: 1.97635}  # two-sided 5%
    for freedom, quantile in published.items():
        assert t_quantile(0.975, freedom) == pytest.approx(quantile, rel=2e-3)
        assert t_two_sided(-quantile, freedom) == pytest.approx(0.05, abs=1e-4)


def test_pooled_data_sets_count_equally():
    first, second = means(np.arange(40.0) % 3), means(np.zeros(40))
    pooled = compare_pooled([(first, second), (second, first)], ACCURACY)
    assert pooled.diff == 0 and pooled.low < 0 < pooled.high and pooled.n == 80
    same_way = compare_pooled([(first, second)] * 2, ACCURACY)
    assert same_way.diff == pytest.approx(0.975) and same_way.low > 0 and same_way.p == pytest.approx(1 / 1001)


def test_randomisation_agrees_with_the_exact_test():
    """The systems differ on 6 questions, of which a wins 5, so the p-value of the exact sign test is 2 * 7 / 64."""
    a, b = means(np.repeat([1.0, 0, 1], [5, 1, 20])), means(np.repeat([0.0, 1, 1], [5, 1, 20]))
    comparison = compare(a, b, ACCURACY, n_resamples=20000)
    assert comparison.p == pytest.approx(14 / 64, abs=0.01)


def bins(stats):
    """Return the means of two bins, given rows of two sums and two counts; the mean of a bin without steps is NaN."""
    return np.divide(stats[:, :2], stats[:, 2:], out=np.full((len(stats), 2), np.nan), where=stats[:, 2:] > 0)


def test_band_has_one_interval_per_bin():
    """Only one of three questions has a value in the second bin, so resamples without this question are excluded."""
    first, second = bootstrap_band(np.array([[-4.0, 0, 1, 0], [-2.0, 0, 1, 0], [0.0, 5, 1, 1]]), bins)
    assert first.value == pytest.approx(-2) and first.low < -2 < first.high
    assert (second.value, second.low, second.high) == (5, 5, 5)
    [_, undefined] = bootstrap_band(np.array([[1.0, 0, 1, 0]]), bins)
    assert np.isnan([undefined.value, undefined.low, undefined.high]).all()


def test_training_variance_widens_the_interval() -> None:
    rng = np.random.default_rng(0)
    questions = rng.random(400)
    equal = np.array([means(questions)] * 3)
    spread = np.array([means(questions + shift) for shift in (-0.2, 0.0, 0.2)])
    base = np.array([means(questions - 0.1)] * 3)
    narrow, wide = (compare_levels(a, base, ACCURACY, same=(False,)) for a in (equal, spread))
    assert narrow.value == pytest.approx(wide.value) == pytest.approx(0.1)
    assert narrow.high - narrow.low < 1e-9  # the difference is equal on all questions
    assert wide.low < 0 < narrow.low and wide.high > 0.2


def test_disagreement_of_guessers_widens_the_interval() -> None:
    """The difference varies between the guessers, but not between the training runs."""
    questions = np.random.default_rng(0).random(400)
    base = np.array([[means(questions)] * 3] * 2)  # (guessers, training runs, n, 2)
    agreed, disputed = base.copy(), base.copy()
    agreed[..., 0] += 0.1
    disputed[..., 0] += np.array([0.0, 0.2])[:, None, None]
    narrow, wide = (compare_levels(a, base, ACCURACY, same=(True, True)) for a in (agreed, disputed))
    assert narrow.value == pytest.approx(wide.value) == pytest.approx(0.1)
    assert narrow.high - narrow.low < 1e-9 and wide.high - 0.1 == pytest.approx(12.706 * 0.1, rel=0.002)  # t, 1 degree


def test_disagreement_widens_the_interval_of_a_mean() -> None:
    questions = np.random.default_rng(0).random(400)
    agreed = np.array([[means(questions)] * 3] * 2)  # (guessers, training runs, n, 2)
    disputed = agreed.copy()
    disputed[..., 0] += np.array([-0.2, 0.2])[:, None, None]
    narrow, wide = (interval_over_levels(tables, ACCURACY) for tables in (agreed, disputed))
    assert narrow.value == pytest.approx(wide.value) == pytest.approx(questions.mean())
    assert narrow.high - narrow.low < 0.07 and wide.low < narrow.low - 0.15 and wide.high > narrow.high + 0.15


def test_training_run_does_not_differ_from_itself() -> None:
    values = means([1.0] * 30 + [0.0] * 70)[None]
    same = compare_levels(values, values, ACCURACY, n_resamples=200, same=(False,))
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_training_run_at_two_k_is_resampled_jointly() -> None:
    questions = np.random.default_rng(0).random(400)
    below = np.array([means(questions + shift) for shift in (-0.2, 0.0, 0.2)])
    above = np.array([means(questions + shift + 0.1) for shift in (-0.2, 0.0, 0.2)])
    apart, together = (compare_levels(above, below, ACCURACY, same=(same,)) for same in (False, True))
    assert apart.value == pytest.approx(together.value) == pytest.approx(0.1)
    assert apart.low < 0 < together.low and together.high - together.low < 1e-9


@pytest.mark.parametrize(
    "call,error",
    [
        (lambda: bootstrap(means(np.zeros(0)), ACCURACY), DataError),
        (lambda: bootstrap(means(np.ones(1)), ACCURACY, n_resamples=0), ConfigError),
        (lambda: compare(means(np.ones(1)), means(np.ones(2)), ACCURACY), DataError),
        (lambda: compare(means(np.ones(1)), np.ones((1, 3)), ACCURACY), DataError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()
