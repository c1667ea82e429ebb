"""The orders that every published p-value was drawn with: another generator would print other digits."""

import numpy as np

from sqa.core.differences import permuted_sums


def test_the_orders_of_three_permutations() -> None:
    """Recorded from the compiled loop that came first: 5 questions, 4 conditions; a digit of a sum is a question's."""
    table = np.arange(20.0).reshape(5, 4, 1) * np.array([1, 10, 100, 1_000, 10_000]).reshape(5, 1, 1)
    [sums] = permuted_sums(table, 3, 0)
    assert sums[..., 0].tolist() == [
        [195071, 206152, 173960, 182843],
        [174952, 185873, 193041, 204160],
        [205862, 174953, 183141, 194070],
    ]
