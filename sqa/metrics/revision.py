"""Normalized erasure: retracted words per word of the final translation.

    NE = sum over writes of the words retracted / words of the final translation

The metric is from Arivazhagan et al. 2020 ("Re-translation versus streaming for simultaneous translation").  0 means
that the system only appends; 1 means one retracted word per final word.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqa.core.trace import QuestionTrace
from sqa.core.types import Floats
from sqa.metrics import FAMILIES
from sqa.metrics.measure import Family, MeanMetric

VERSION = 1  # increase it when the values of a metric in this module change


@dataclass(frozen=True, slots=True)
class NormalizedErasure(MeanMetric):
    """Words retracted per word of the final translations, >= 0, pooled over questions.

    stats = [words retracted, words of the final translations].
    """

    family: ClassVar[Family] = FAMILIES["ne"]

    def signature(self) -> str:
        return f"ne|unit:word|mean:pooled|resample:question|version:{VERSION}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return [words retracted, words of the final translation], (2,)."""
        erased = sum(emission.erase for emission in trace.emissions)
        final = sum(len(hypothesis.split()) for hypothesis in trace.hypotheses)
        return np.array([erased, final], dtype=np.float64)
