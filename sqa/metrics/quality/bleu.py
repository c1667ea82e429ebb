"""BLEU, chrF, TER and Latency BLEU, by sacrebleu, on detokenised text.

One segment is one question: the hypothesis is all its target words on one line, and the reference is the human
translation on one line, because the two sides may have different numbers of sentences.  Statistics and scores of a
corpus come from sacrebleu, so the score exactly equals `sacrebleu.corpus_bleu` on the same lines.  Only resampling,
which needs thousands of scores, uses a vectorised copy of the three formulas.  TER takes a third of a second per
question, so runs store its statistics by text (`sqa.pipeline.quality_stage`), as they do for the models of
sqa/metrics/quality/text_metric.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from sqa.core import Floats, NotComputable, QuestionTrace
from sqa.metrics.measure import Family, MeanMetric, choices, lines

if TYPE_CHECKING:
    from sqa.metrics.quality.text_metric import Segment


class SacreBleu(MeanMetric, Protocol):
    """A metric whose statistics, score of their sum and signature come from a sacrebleu `scorer`."""

    @property
    def scorer(self) -> BLEU | CHRF | TER: ...

    def signature(self) -> str:
        self.scorer.corpus_score(["-"], [["-"]])  # sacrebleu learns the number of references only from a first call
        return f"{self.name}|segment:question|{self.scorer.get_signature()}"

    def statistics(self, hypothesis: str, reference: str) -> Floats:
        """Return sacrebleu's statistics of a text, followed by 1 for the question, (d + 1,)."""
        [stats] = self.scorer._extract_corpus_statistics([hypothesis], [[reference]])
        return np.array([*stats, 1.0], dtype=np.float64)

    def stats(self, trace: QuestionTrace) -> Floats:
        return self.statistics(*lines(trace))

    def score(self, stats: Floats) -> float:
        """Return sacrebleu's score of summed statistics (d + 1,), 0 to 100; raises NotComputable without questions."""
        if not stats[-1] > 0:
            raise NotComputable(f"{self.name}: there is no question to score")
        return float(self.scorer._compute_score_from_stats([int(value) for value in stats[:-1]]).score)


@Family("bleu", "BLEU", unit="0-100", digits=2)
@dataclass(frozen=True, slots=True)
class Bleu(SacreBleu):
    """Corpus BLEU, 0 to 100 (Papineni et al. 2002; sacrebleu's defaults: 13a, exp smoothing, mixed case).

    stats = [hypothesis length, reference length, matched 1..4-grams, hypothesis 1..4-grams, questions], (11,).
    """

    scorer: BLEU = field(default_factory=BLEU, repr=False, compare=False)

    def score_many(self, stats: Floats) -> Floats:
        """Return the BLEU (B,) of each row of statistics (B, 11); nan without questions.

        Uses the formula of `BLEU.compute_bleu` with exp smoothing.
        """
        system, reference, questions = stats[:, 0], stats[:, 1], stats[:, 10]
        correct, total = stats[:, 2:6], stats[:, 6:10]  # (B, 4)
        unmatched = (correct == 0) & (total > 0)
        halvings = np.cumsum(unmatched, axis=1)  # the k-th order without a match counts as 1 / 2^k matches
        matches = np.where(unmatched, 0.5**halvings, correct)
        # sacrebleu stops at the first order without hypothesis n-grams and gives it log 0 = -9999999999
        logs = np.where(total > 0, np.log(100 * np.maximum(matches, 1e-300) / np.maximum(total, 1)), -np.inf)
        late = np.where((system > 0) & (system < reference), 1 - reference / np.maximum(system, 1), 0.0)
        scores = np.exp(late) * np.exp(logs.mean(axis=1))
        scores = np.where((correct.sum(axis=1) > 0) & (system > 0), scores, 0.0)
        return np.where(questions > 0, scores, np.nan)


@Family("chrf", "chrF", unit="0-100", digits=2)
@dataclass(frozen=True, slots=True)
class ChrF(SacreBleu):
    """Corpus chrF2, 0 to 100 (Popovic 2015; sacrebleu's defaults: character 6-grams, no words, beta 2).

    stats = [hypothesis, reference, matched n-grams for n = 1..6, questions], (19,).
    """

    scorer: CHRF = field(default_factory=CHRF, repr=False, compare=False)

    def score_many(self, stats: Floats) -> Floats:
        """Return the chrF (B,) of each row of statistics (B, 19); nan without questions.

        Uses the formula of `CHRF._compute_f_score`.
        """
        counts = stats[:, :-1].reshape(len(stats), -1, 3)  # (B, 6, 3)
        hypothesis, reference, match = counts[..., 0], counts[..., 1], counts[..., 2]  # (B, 6)
        used = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(used.sum(axis=1), 1)
        precision = np.where(used, match / np.maximum(hypothesis, 1), 0.0).sum(axis=1) / orders  # (B,)
        recall = np.where(used, match / np.maximum(reference, 1), 0.0).sum(axis=1) / orders
        factor = self.scorer.beta**2
        bottom = factor * precision + recall
        scores = 100 * (1 + factor) * precision * recall / np.where(bottom > 0, bottom, 1.0)
        return np.where(stats[:, -1] > 0, scores, np.nan)


@Family("ter", "TER", unit="per 100 words", digits=2, higher_is_better=False)
@dataclass(frozen=True, slots=True)
class Ter(SacreBleu):
    """Corpus TER, 0 = no edits needed, 100 = as many edits as reference words; may exceed 100 (Snover et al. 2006).

    sacrebleu's defaults: Tercom's tokens, no case.  stats = [edits, reference words, questions], (3,).
    """

    scorer: TER = field(default_factory=TER, repr=False, compare=False)

    def fingerprint(self) -> str:
        return self.signature()

    def measure(self, segments: Sequence[Segment]) -> list[tuple[float, ...]]:
        return [tuple(map(float, self.statistics(s.hypothesis, s.reference))) for s in segments]

    def score_many(self, stats: Floats) -> Floats:
        """Return the TER (B,) of each row of statistics (B, 3); nan without questions.

        An empty reference gives 100 with edits and 0 without, as in sacrebleu.
        """
        edits, words, questions = stats.T
        scores = np.where(words > 0, 100 * edits / np.maximum(words, 1), np.where(edits > 0, 100.0, 0.0))
        return np.where(questions > 0, scores, np.nan)


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

        LBLEU  = 1/T sum_{t=1..T} BLEU(y_t, r)                        the integral over the source, `lbleu`
        reward = 1/T sum_{t=1..T} BLEU(y_t, r) + T BLEU(y_T, r)       the paper's objective, `lbleu@reward`

    y_t is the text visible after t of the T source words, and r is the whole human translation.  BLEU is smoothed by
    one (Lin and Och 2004) and is 0 for an empty text.  The metric is from Grissom II et al. 2014 ("Don't until the
    final verb wait").  The paper counts within a sentence; here a segment is a question, because source and reference
    may have different numbers of sentences.

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
