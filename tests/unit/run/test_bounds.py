"""Bounds of a config's numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import pytest

from sqa.core.errors import BelowOne, Bound, ConfigError, Count, NotNegative, Positive, Share, Whole, bounds, checked


@dataclass(frozen=True, slots=True)
@checked
class Config:
    count: Count = 1
    whole: Whole = 0
    positive: Positive = 0.1
    not_negative: NotNegative = 0.0
    share: Share = 1.0
    below: BelowOne = 0.0
    inner: Annotated[float, Bound(0, 1, above=True, below=True)] = 0.5
    optional: Count | None = None
    free: int = -5

    def problems(self) -> list[str]:
        if self.free == 13:
            raise ConfigError("free: its own part says no")
        return ["free: is even"] if self.free % 2 == 0 else []


@pytest.mark.parametrize(
    ("key", "taken", "refused", "bound"),
    [
        ("count", (1, 9), (0, -1), ">= 1"),
        ("whole", (0,), (-1,), ">= 0"),
        ("positive", (1e-9,), (0.0, -1.0, math.nan, math.inf), "> 0"),
        ("not_negative", (0.0,), (-1e-9, math.nan), ">= 0"),
        ("share", (0.0, 1.0), (-0.1, 1.1), "in [0, 1]"),
        ("below", (0.0, 0.99), (1.0, -0.1), "in [0, 1)"),
        ("inner", (0.01, 0.99), (0.0, 1.0), "in (0, 1)"),
        ("optional", (None, 1), (0,), ">= 1 or null"),
    ],
)
def test_a_number_outside_is_refused_in_one_line(key, taken, refused, bound):
    for value in taken:
        assert getattr(Config(**{key: value}), key) == value
    for value in refused:
        with pytest.raises(ConfigError) as caught:
            Config(**{key: value})
        assert caught.value.problems == (f"{key}: must be {bound}, got {value}",)


def test_all_problems_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        Config(count=0, share=2.0, free=4)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["count", "share", "free"]
    with pytest.raises(ConfigError) as caught:
        Config(count=0, free=13)
    assert caught.value.problems == ("count: must be >= 1, got 0", "free: its own part says no")
    assert "free" not in bounds(Config) and bounds(Config)["optional"] == (Bound(1), True)
