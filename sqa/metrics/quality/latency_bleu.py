"""Latency BLEU: the BLEU of the translation visible at each source word, averaged over the question.

    LBLEU  = 1/T sum_{t=1..T} BLEU(y_t, r)                        the integral over the source, `lbleu`
    reward = 1/T sum_{t=1..T} BLEU(y_t, r) + T BLEU(y_T, r)       the paper's objective, `lbleu@reward`

y_t is the text visible after t of the T source words, and r is the whole human translation.  BLEU is smoothed by one
(Lin and Och 2004) and is 0 for an empty text.  The metric is from Grissom II et al. 2014 ("Don't until the final verb
wait").  The paper counts within a sentence; here a segment is a question, because source and reference may have
different numbers of sentences.
"""

from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from sqa.core.trace import QuestionTrace
from sqa.core.types import Floats
from sqa.metrics.measure import Family, MeanMetric, choices

_SMOOTHED = BLEU(smooth_method="add-k", smooth_value=1)


@Family(
    "lbleu",
    "Latency BLEU",
    "{m.sum}|segment:question|smooth:add-1|tok:13a",
    unit="0-100",
    digits=2,
    parameters=(choices("sum", "reward"),),
    shown={"reward": {"label": "Latency BLEU, reward", "unit": "points"}},
)
@dataclass(frozen=True, slots=True)
class LatencyBleu(MeanMetric):
    """Mean over questions of the Latency BLEU; `lbleu` is in 0..100, `lbleu@reward` in 0..100 (T + 1).

    stats = [value of the question, 1].
    """

    sum: str = "integral"  # "integral", or "reward" with the final BLEU counted T times

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return [value, 1], (2,)."""
        self.require(trace)
        total, words = trace.question.reference_text, len(trace.question.words)
        shown = {int(t): text for t, text in zip(trace.source_words, trace.prefixes.texts, strict=True)}  # last at t
        until = [*sorted(shown)[1:], words + 1] if shown else []
        scores = [(_bleu(shown[t], total), end - max(t, 1)) for t, end in zip(sorted(shown), until, strict=True)]
        value = sum(score * during for score, during in scores) / words
        if self.sum == "reward" and scores:
            value += words * scores[-1][0]
        return np.array([value, 1.0], dtype=np.float64)


def _bleu(text: str, reference: str) -> float:
    return float(_SMOOTHED.sentence_score(text, [reference]).score) if text else 0.0
