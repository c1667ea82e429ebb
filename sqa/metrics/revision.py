"""How much of what was shown was taken back: normalized erasure.

    NE = sum over writes of the words retracted / words of the final translation

Arivazhagan et al. 2020 ("Re-translation versus streaming for simultaneous translation").  0 for a system that only
appends; 1 means that for every word that stayed one was taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sqa import __version__
from sqa.core.significance import ratio, ratio_many
from sqa.core.types import Floats

if TYPE_CHECKING:
    from sqa.core.trace import QuestionTrace


@dataclass(frozen=True, slots=True)
class NormalizedErasure:
    """Words retracted per word of the final translations, >= 0, pooled over questions.

    stats = [words retracted, words of the final translations].
    """

    name: ClassVar[str] = "ne"
    label: ClassVar[str] = "NE"
    unit: ClassVar[str] = "per word"
    digits: ClassVar[int] = 3
    kind: ClassVar[str] = "lag"
    higher_is_better: ClassVar[bool] = False

    def signature(self) -> str:
        return f"ne|unit:word|mean:pooled|resample:question|v:{__version__}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2,): [words retracted, final words]."""
        erased = sum(emission.erase for emission in trace.emissions)
        final = sum(len(hypothesis.split()) for hypothesis in trace.hypotheses)
        return np.array([erased, final], dtype=np.float64)

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)
