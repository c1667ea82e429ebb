"""Reference permutations: a change of the random number generator would change every published p-value."""

import numpy as np

from sqa.core import permuted_sums


def test_three_permutations_are_as_recorded() -> None:
    """The table has 5 questions and 4 conditions; each question contributes to its own digits of a sum."""
    table = np.arange(20.0).reshape(5, 4, 1) * np.array([1, 10, 100, 1_000, 10_000]).reshape(5, 1, 1)
    [sums] = permuted_sums(table, 3, 0)
    assert sums[..., 0].tolist() == [
        [195071, 206152, 173960, 182843],
        [174952, 185873, 193041, 204160],
        [205862, 174953, 183141, 194070],
    ]
