"""Expected wins inside SimulEval: a folder for its `--user-dir` that registers SQA_EW and related latency metrics.

    simuleval --user-dir $(sqa scorer simuleval) --latency-metrics AL SQA_EW --sqa-questions mini-es --sqa-guesser bm25

The sentences must be those of a question set, in order (`sqa questions show SET`).  Guesser and buzzer answer as in
`sqa run` on the same log, so the numbers are the same.  `--score-only` scores old logs.

SQA_FACTS, SQA_FACTS_INVENTED, SQA_FACTS_LAG and SQA_FACTS_TIMED need references but no questions, and equal the values
of `sqa latency LOG --facts`.  SQA_ANSWERED, SQA_ANSWERED_EARLY and SQA_ANSWERED_LAG equal the values of `sqa ask`.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from functools import cache
from typing import Any

from simuleval.evaluator.scorers.latency_scorer import LatencyScorer, register_latency_scorer

from sqa.core import DataError, SqaError
from sqa_services.simuleval.answered import SEGMENTAL, SHOWN, Segmental, add_options, answered, in_a_file

SEGMENT_KEYS = ("index", "prediction", "delays", "reference", "source", "source_length")
_TEXTS = ("prediction", "prediction_spm", "source")
LOGGED = ("index", *_TEXTS, "delays", "elapsed", "prediction_length", "source_length", "metric")


class _OfALog(LatencyScorer):
    """Base class of metrics that score all instances as the text of a log; metrics.tsv also gets sentence scores."""

    shown: str  # name of the metric in SimulEval
    args: Namespace
    keys: Sequence[str] = LOGGED

    def scores(self, log: str) -> tuple[Sequence[float], float]:
        """Return the score of each sentence, and the score of all sentences."""
        raise NotImplementedError

    def __call__(self, instances: dict[int, Any]) -> float:
        numbers = sorted(instances)
        try:
            scores, value = self.scores("".join(_line(instances[number], self.keys) for number in numbers))
        except SqaError as error:  # SimulEval would print a traceback
            raise SystemExit(f"sqa: {error}") from error
        for number, score in zip(numbers, scores, strict=True):
            instances[number].metrics[self.shown] = score
        return value

    @classmethod
    def from_args(cls, args: Namespace) -> _OfALog:
        scorer = cls()
        scorer.args = args
        return scorer


class OfAnswers(_OfALog):
    """A metric of the answers that a translation allows; each sentence gets its question's score."""

    metric: str
    add_args = staticmethod(add_options)

    def scores(self, log: str) -> tuple[Sequence[float], float]:
        scores, value = _answered(log, self.args.sqa_questions, self.args.sqa_guesser, self.args.sqa_buzzer)
        return scores[self.metric], value[self.metric]


class OfSegments(_OfALog):
    """A metric of segments, without a question set; a sentence without facts or questions has the value NaN."""

    scorer: Segmental
    keys = SEGMENT_KEYS

    def scores(self, log: str) -> tuple[Sequence[float], float]:
        stats, metric = self.scorer.stats(log, self.args), self.scorer.metric
        return metric.score_many(stats).tolist(), metric.score(stats.sum(axis=0))


for _shown, _name in SHOWN.items():

    @register_latency_scorer(_shown)
    class _Answers(OfAnswers):
        shown, metric = _shown, _name


for _shown, _scorer in SEGMENTAL.items():

    @register_latency_scorer(_shown)
    class _Segments(OfSegments):
        shown, scorer, add_args = _shown, _scorer, staticmethod(_scorer.add_options)


def _line(instance: Any, keys: Sequence[str] = LOGGED) -> str:
    """Return a line of instances.log, as SimulEval writes it and `recorded` reads it."""
    row = instance.info if hasattr(instance, "info") else instance.summarize()
    return json.dumps({key: row[key] for key in keys if key in row}) + "\n"


@cache
def _answered(log: str, questions: str, guesser: str, buzzer: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return two dicts by metric for a log's text: the score of each sentence's question, and the overall score."""
    with in_a_file(log) as file:
        result = answered(file, questions, guesser, buzzer)
    of_sentence = [index for index, question in enumerate(result.questions) for _ in question.sentences]
    if len(of_sentence) != (written := log.count("\n")):
        raise DataError(f"--sqa-questions: has {len(of_sentence)} sentences, SimulEval has {written}; set its `limit`")
    return {name: [row[index] for index in of_sentence] for name, row in result.scores.items()}, result.value
