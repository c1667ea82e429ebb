"""The training mask: plain wait-k, and with an emission rate below one."""

from __future__ import annotations

import pytest
import torch

from smt.policies.waitk import FULL, Schedule
from smt.training.batches import Batch


def batch(source_words: int, target_words: int) -> Batch:
    """One sentence with one piece per word, both sides ending in their own end piece."""
    x, y = torch.arange(source_words + 1)[None], torch.arange(target_words + 1)[None]
    return Batch(x, x, y, y, y, torch.zeros(0, 3, dtype=torch.long))


def seen(k: int, rate: float, source_words: int = 300, target_words: int = 200) -> list[int]:
    """How many source words each target word sees."""
    pair = batch(source_words, target_words)
    return Schedule(k, rate).visible(pair.source_word, pair.target_word)[0].sum(1).tolist()


@pytest.mark.parametrize("k", [3, 15])
def test_an_emission_rate_of_97_percent_reads_one_more_word_every_33(k):
    plain, slower = seen(k, 1.0), seen(k, 0.97)
    assert plain[:5] == [k, k + 1, k + 2, k + 3, k + 4]
    extra = [b - a for a, b in zip(plain, slower, strict=True)]
    assert extra[:33] == [0] * 33 and extra[33] == 1 and extra == sorted(extra)
    assert extra[97] == 3 and extra[194] == 6  # (j - 1) / 0.97 = 100 and 200 after 97 and 194 words
    assert max(slower) <= 301 and set(seen(FULL, 0.97, 20, 30)) == {21}
