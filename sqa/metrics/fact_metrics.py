"""Metrics of facts: the share of facts that arrive, the share that are invented, and the lag of arrival.

    facts            share of the human translation's facts that the translation has
    facts@invented   share of the translation's facts that neither the human translation nor the source has
    facts-lag        source words read between a fact's source word and the output word that completes the fact: mean
                     over arriving facts with a known source word; negative if the fact was anticipated
    facts-lag@seconds  the same in seconds of speech, for questions with word times
    facts@timed      share of the arriving facts with a known source word, on which `facts-lag` is based

sqa/metrics/quality/facts.py defines facts.  The metrics need no quiz questions, so they work on any test set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from sqa.core import Floats, QuestionTrace, final_steps
from sqa.metrics.measure import Family, MeanMetric, choices, lines
from sqa.metrics.quality.facts import Judged, judge, lexicon_digest

Side = Literal["arrived", "invented", "timed", "lag", "seconds"]


def fact_stats(side: Side, judged: Judged, reads: Sequence[float], positions: Sequence[float]) -> Floats:
    """Return two statistics, (2,): the number of facts that count (or the sum of their lags), and of facts considered.

    Args:
        reads: Source read before each target word.
        positions: Position at which each source word has been read, in the unit of `reads`.
    """
    if side == "invented":
        return np.array([len(judged.invented), len(judged.written)], dtype=np.float64)
    arrived = [(located.target, located.source) for located in judged.expected if located.target is not None]
    if side == "arrived":
        return np.array([len(arrived), len(judged.expected)], dtype=np.float64)
    lags = [reads[target] - positions[source] for target, source in arrived if source is not None]
    if side == "timed":
        return np.array([len(lags), len(arrived)], dtype=np.float64)
    return np.array([sum(lags), len(lags)], dtype=np.float64)


@Family(
    "facts",
    "Facts",
    parameters=(choices("side", "invented", "timed"),),
    shown={"invented": {"label": "Facts invented", "higher_is_better": False}, "timed": {"label": "Facts timed"}},
)
@dataclass(frozen=True, slots=True)
class Facts(MeanMetric):
    """A metric of facts, see the module's docstring; its additive statistics are those of `fact_stats`."""

    side: Side = "arrived"

    def signature(self) -> str:
        return f"{self.family.base}|{self.side}|segment:question|told:once|lexicon:{lexicon_digest()}|version:2"

    def stats(self, trace: QuestionTrace) -> Floats:
        question, (_, reference), (target, reads) = trace.question, lines(trace), written(trace)
        judged = judge(question.words, target, tuple(reference.split()), question.language)
        if self.side != "seconds":
            return fact_stats(self.side, judged, reads, range(1, len(question.words) + 1))
        if not question.word_times:
            return np.zeros(2)
        times = (0.0, *question.word_times)  # seconds at which each number of words has been spoken
        return fact_stats("lag", judged, [times[read] for read in reads], question.word_times)


@Family(
    "facts-lag",
    "Lag of facts",
    kind="lag",
    unit="words",
    parameters=(choices("side", "seconds"),),
    shown={"seconds": {"label": "Lag of facts, s", "unit": "seconds"}},
)
@dataclass(frozen=True, slots=True)
class FactsLag(Facts):
    """The lag of facts in source words, or in seconds of speech."""

    side: Side = "lag"


# metrics that are computed for a log, by side
OF_LOGS: dict[Side, Facts] = {
    "arrived": Facts(),
    "invented": Facts("invented"),
    "lag": FactsLag(),
    "timed": Facts("timed"),
}


def summary_of(trace: QuestionTrace) -> str:
    """Summarise the arrived, lost and invented facts of a question in a sentence; "" without facts."""
    target, reads = written(trace)
    question = trace.question
    judged = judge(question.words, target, tuple(question.reference_text.split()), question.language)
    if not judged.expected and not judged.invented:
        return ""
    arrived, of = fact_stats("arrived", judged, reads, ()).astype(int).tolist()
    late, timed = fact_stats("lag", judged, reads, range(1, len(question.words) + 1)).tolist()
    clauses = [f"Facts: {arrived} of {of} arrive" + (f", {late / timed:.1f} source words late" if timed else "")]
    lost = [located.fact.text for located in judged.expected if located.target is None]
    for name, facts in (("lost", lost), ("invented", [fact.text for fact in judged.invented])):
        clauses += [f"{name}: {', '.join(facts)}"] if facts else []
    return "; ".join(clauses) + "."


def written(trace: QuestionTrace) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the words of the final translation, and for each the number of source words read when it was written."""
    steps = list(chain.from_iterable(final_steps(trace.question, trace.emissions)))
    return tuple(trace.emissions[step].token for step in steps), tuple(trace.source_words[steps].tolist())
