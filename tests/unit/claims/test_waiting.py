"""The gain in facts from waiting on a test set, minus the gain on XQB."""

import numpy as np
import pytest

from experiments.validity.waiting_rewarded import beyond


def texts(gain, n):
    """Return the numbers of arrived and counted facts of `n` texts; at full input the share is `gain` higher."""
    early = np.stack([np.full(n, 2.0), np.full(n, 10.0)], axis=1)
    return {"3": early, "full": early + np.array([10 * gain, 0])}


def test_gain_beyond_xqb_is_the_difference_of_gains():
    for gain, of_xqb in ((0.3, 0.1), (0.1, 0.3)):
        row = beyond((), texts(gain, 50), texts(of_xqb, 20), "3")
        assert (row.value, row.low, row.high) == pytest.approx((gain - of_xqb,) * 3)
