"""The training mask: plain wait-k, and with an emission rate below one."""

from __future__ import annotations

import pytest
import torch
from refusals import refused

from smt.policies.waitk import FULL, Schedule
from smt.training.batches import Batch
from sqa.core.errors import ConfigError
from tests.sweep_process import config


def batch(source_words: int, target_words: int) -> Batch:
    """One sentence with one piece per word, both sides ending in their own end piece."""
    x, y = torch.arange(source_words + 1)[None], torch.arange(target_words + 1)[None]
    return Batch(x, x, y, y, y, torch.zeros(0, 3, dtype=torch.long))


def seen(k: int, rate: float, source_words: int = 300, target_words: int = 200) -> list[int]:
    """How many source words each target word sees."""
    pair = batch(source_words, target_words)
    return Schedule(k, rate).visible(pair.source_word, pair.target_word)[0].sum(1).tolist()


def test_at_rate_one_a_word_is_read_per_word_written():
    assert seen(3, 1.0)[:5] == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("k", [3, 6, 15])
def test_an_emission_rate_of_97_percent_reads_one_more_word_every_33(k):
    plain, slower = seen(k, 1.0), seen(k, 0.97)
    extra = [b - a for a, b in zip(plain, slower, strict=True)]
    assert extra[:33] == [0] * 33 and extra[33] == 1 and extra == sorted(extra)
    assert extra[97] == 3 and extra[194] == 6  # (j - 1) / 0.97 = 100 and 200 after 97 and 194 words
    assert max(slower) <= 301


def test_full_input_sees_everything_at_any_rate():
    assert set(seen(FULL, 0.97, 20, 30)) == {21}


def test_invalid_rates_are_refused():
    for wrong in (0.0, 1.2):
        refused(ConfigError, "emission_rate", config, emission_rate=wrong)
