"""Computations of the published items, on data with known results."""

from contextlib import nullcontext

import numpy as np
import pytest

from experiments.over_k import POOLED, OverK
from experiments.paper import claims, error_rates
from experiments.row_cache import cached_rows
from sqa.files.store import Stage, Store


def test_planted_effect_has_the_stated_size():
    """The questions have individual win rates that do not depend on k."""
    rng, parts = np.random.default_rng(7), []
    for size in (60, 150):
        rate = rng.beta(1, 2, (size, 1))
        won = (rng.random((size, 6)) < rate).astype(float)
        parts.append({"ew": np.stack([0.6 * won, np.ones_like(won)], axis=2)})
    series = OverK(POOLED, claims.PRIMARY, "rerank", (1, 2, 3, 6, 9, "full"), tuple(parts))
    tables = error_rates.planted(series, 50, [2, 3])
    for rows in (slice(0, 60), slice(60, None)):  # the questions of each data set
        gained = tables[rows].sum(axis=0)[:, 0].mean(axis=1)  # (K,)
        assert gained[[2, 3]] - gained[[0, 1, 4, 5]].mean() == pytest.approx([error_rates.DIFFERENCE] * 2, abs=0.01)


def test_killed_stage_resumes_at_the_missing_block(tmp_path):
    asked, stage = [], Stage("made", "m:f", "f", (), "d", 2)

    def make(block):
        asked.append(block.start)
        if asked == [0, 2]:
            raise KeyboardInterrupt
        yield from ((index,) for index in range(*block.indices(5)))

    for ends in (pytest.raises(KeyboardInterrupt), nullcontext()):
        with ends:
            values = cached_rows(Store(tmp_path), stage, list("abcde"), make, "", value="i4")
    assert values == [(index,) for index in range(5)] and asked == [0, 2, 2, 4]
