"""Quality metrics that average a score per segment, which depends only on the texts of the segment.

    quality:
      - comet: {model: Unbabel/wmt22-comet-da}           # or a local folder; download: true needs a revision
      - bertscore: {model: roberta-large, baseline: true}
      - bleurt: {model: lucadiliello/BLEURT-20-D12}
      - external: [java, -jar, meteor-1.5.jar, "-", "-", -stdio, -l, en, -norm]
      - scores: {file: "yisi/{run}.txt", name: yisi1}    # scores from another program

One segment is one question, as for BLEU.  COMET, BERTScore and BLEURT are made for sentences.  They score the
question's sentences if source and human translation have equally many, else the question as a whole.  `QUALITY` in
sqa/core/registry.py lists the kinds.  A user-defined kind is "your.module:build", a function of one dataclass that
returns a `TextMetric` (for a score per segment: a `MeanOfSegments`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from sqa.core import DataError, Floats, NotComputable, QuestionTrace, ratio, ratio_many
from sqa.files import digest
from sqa.metrics.measure import lines


@dataclass(frozen=True, slots=True)
class Segment:
    """The texts of one question, one line each.

    Attributes:
        id: Identifier of the question.
        source: Source text.
        hypothesis: Translation; empty if nothing was written.
        reference: Human translation.
        sentences: The same three texts per sentence; empty if sentences are not paired.

    Examples:
        >>> Segment("q1", "Buenos días. Adiós.", "Hello. Bye.", "Good day. Bye.").by_sentence[0].hypothesis
        'Hello. Bye.'
    """

    id: str
    source: str
    hypothesis: str
    reference: str
    sentences: tuple[tuple[str, str, str], ...] = ()

    @property
    def by_sentence(self) -> list[Segment]:
        """One segment per sentence, or the question itself if its sentences are not paired."""
        return [Segment(self.id, *texts) for texts in self.sentences] or [self]

    @property
    def key(self) -> str:
        """Hash of all texts."""
        return digest([self.source, self.hypothesis, self.reference, *self.sentences])


def segment_of(trace: QuestionTrace) -> Segment:
    """Return the texts of a trace; raises NotComputable without a human translation."""
    question, (hypothesis, reference) = trace.question, lines(trace)
    sides = ([" ".join(words) for words in question.sentences], trace.hypotheses, question.reference)
    paired = len(question.reference) == len(question.sentences) > 1 and all(map(str.strip, question.reference))
    sentences = tuple(zip(*sides, strict=True)) if paired else ()
    return Segment(question.id, question.text, hypothesis, reference, sentences)


@dataclass(frozen=True)
class MeanOfSegments:
    """The mean of a score per segment; stats = [sum of scores, segments], (2,).

    Args:
        name: Name of the metric.
        signature_text: Text that is equal for comparable values.
        identity: Fingerprint of the model; None if its statistics must not be stored.
        scores: Function that returns a finite score per segment.
        higher_is_better: Whether a higher score is better.
        unit: Unit of the score.
        digits: Decimal places in reports.
        by_sentence: Whether each sentence of a question is a segment, if its sentences are paired.
        label: Name in figures and tables of a metric that has the default name; otherwise its name.

    Examples:
        >>> length = MeanOfSegments("chars", "v1", "", lambda segments: [float(len(s.hypothesis)) for s in segments])
        >>> length.score(np.array(length.measure([Segment("q1", "Buenos días.", "Hello.", "Hello.")])[0]))
        6.0
    """

    name: str
    signature_text: str
    identity: str | None
    scores: Callable[[Sequence[Segment]], Sequence[float]]
    higher_is_better: bool = True
    unit: str = "mean score"
    digits: int = 3
    by_sentence: bool = False
    label: str = ""
    kind: ClassVar[str] = "quality"

    def __post_init__(self) -> None:
        if self.label.lower() != self.name:
            object.__setattr__(self, "label", self.name)

    def signature(self) -> str:
        """Return the text that is equal for comparable values.

        Returns:
            `signature_text`.
        """
        return self.signature_text

    def fingerprint(self) -> str | None:
        """Identify the model.

        Returns:
            `identity`.
        """
        return self.identity

    def measure(self, segments: Sequence[Segment]) -> list[tuple[float, ...]]:
        """Score the segments of questions.

        Args:
            segments: One segment per question.

        Returns:
            (sum of scores, number of segments) per question.

        Raises:
            DataError: If the model fails, or a score is not finite.
        """
        parts = [segment.by_sentence if self.by_sentence else [segment] for segment in segments]
        scored = [part for of_question in parts for part in of_question]
        fails = (RuntimeError, IndexError, ValueError, TypeError)  # e.g. if the weights do not fit the tokenizer
        with refused_with(f"{self.name}: its model fails on these texts", fails):
            scores = [float(score) for score in self.scores(scored)]
        if len(scores) != len(scored):
            raise DataError(f"{self.name}: {len(scores)} scores for {len(scored)} segments")
        for part, score in zip(scored, scores, strict=True):
            if not math.isfinite(score):
                raise DataError(f"{self.name}: the score of {part.id} is {score}, not a number")
        left = iter(scores)
        return [(sum(islice(left, len(of_question))), float(len(of_question))) for of_question in parts]

    def stats(self, trace: QuestionTrace) -> Floats:
        """Score one question.

        Args:
            trace: The trace of the question.

        Returns:
            (sum of scores, number of segments), (2,) float64.

        Raises:
            NotComputable: If the question has no human translation.
            DataError: If the model fails, or a score is not finite.
        """
        return np.array(self.measure([segment_of(trace)])[0])

    def score(self, stats: Floats) -> float:
        """Return the mean of a sum of statistics.

        Args:
            stats: (sum of scores, number of segments), (2,) float64.

        Returns:
            The mean score per segment, in `unit`.

        Raises:
            NotComputable: If there is no segment.
        """
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        """Return the mean of several sums of statistics.

        Args:
            stats: Sums of statistics, (B, 2) float64.

        Returns:
            Scores (B,) float64; nan without segments.
        """
        return ratio_many(stats)


def not_computed(name: str, reason: str, label: str = "") -> MeanOfSegments:
    """Return a metric without values whose signature states the reason."""
    return saved(name, f"not computed: {reason}", label, reason)


def saved(name: str, signature: str, label: str, reason: str = "") -> MeanOfSegments:
    """Return a metric that only averages the stored statistics of a finished run; `reason`: why it scores no texts."""

    def scores(segments: Sequence[Segment]) -> Sequence[float]:
        raise NotComputable(reason or f"{name}: only stored statistics can be summed here")

    return MeanOfSegments(name, signature, None, scores, label=label)


UNLOADABLE = (RuntimeError, ValueError, TypeError, LookupError, OSError, AttributeError, AssertionError)


@contextmanager
def refused_with(start: str, kinds: tuple[type[Exception], ...] = UNLOADABLE) -> Iterator[None]:
    """Convert exceptions of a model's package, by default those raised by loading, to a one-line DataError."""
    try:
        yield
    except kinds as error:
        raise DataError(f"{start}: {' '.join(str(error).split())[:200]}") from error
