"""Rows of an item in the store."""

from contextlib import nullcontext

import pytest

from experiments.outputs import cached_rows
from sqa.files import Stage, Store


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
