"""Normalized erasure on writes counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import echo, question

from sqa.core.errors import NotComputable
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission
from sqa.metrics import build

Q = question()
[NE] = build(["ne"])


def test_words_retracted_per_word_that_stays():
    writes = (
        Emission(0, "a", 1, False),
        Emission(0, "b", 1, False),
        Emission(0, "c", 2, False, erase=2),  # "c"
        Emission(1, "d", 1, False),
        Emission(1, "e", 2, False),
        Emission(1, "", 3, False, erase=1),  # "c d"
    )
    stats = NE.stats(QuestionTrace(Q, writes))
    assert stats.tolist() == [3, 2] and NE.score(stats) == 1.5
    assert NE.score_many(np.stack([stats, 2 * stats])).tolist() == [1.5, 1.5]


def test_appending_erases_nothing():
    assert NE.score(NE.stats(QuestionTrace(Q, echo(Q)))) == 0


def test_undefined_where_nothing_lasts():
    gone = (Emission(0, "a", 1, False), Emission(0, "", 2, False, erase=1))
    for emissions in ((), gone):
        with pytest.raises(NotComputable, match="ne: undefined"):
            NE.score(NE.stats(QuestionTrace(Q, emissions)))
