"""Expected wins inside SimulEval: a folder for its `--user-dir` that registers SQA_EW and related latency metrics.

    simuleval --user-dir $(sqa scorer simuleval) --latency-metrics AL SQA_EW --sqa-questions mini-es --sqa-guesser bm25

The sentences must be those of a question set, in order (`sqa questions show SET`).  Guesser and buzzer answer as in
`sqa run` on the same log, so the numbers are the same.  `--score-only` scores old logs.

SQA_FACTS, SQA_FACTS_INVENTED, SQA_FACTS_LAG and SQA_FACTS_TIMED need references but no questions, and equal the values
of `sqa latency LOG --facts`.  SQA_ANSWERED, SQA_ANSWERED_EARLY and SQA_ANSWERED_LAG equal the values of `sqa ask`.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from simuleval.evaluator.scorers.latency_scorer import LatencyScorer, register_latency_scorer

from sqa.core import DataError, SqaError
from sqa.metrics.log_lines import in_a_file
from sqa_services.simuleval.answered import SEGMENTAL, SHOWN, Segmental, add_options, answered

Scores = Callable[[str, Namespace], tuple[Sequence[float], float]]  # scores of sentences, score of all of them
SEGMENT_KEYS = ("index", "prediction", "delays", "reference", "source", "source_length")
_TEXTS = ("prediction", "prediction_spm", "source")
LOGGED = ("index", *_TEXTS, "delays", "elapsed", "prediction_length", "source_length", "metric")


class OfALog(LatencyScorer):
    """A metric that scores all instances as the text of a log; metrics.tsv also gets sentence scores."""

    shown: str  # name of the metric in SimulEval
    scores: Scores
    keys: Sequence[str]  # of a line of the log
    args: Namespace

    def __call__(self, instances: dict[int, Any]) -> float:
        numbers = sorted(instances)
        try:
            log = "".join(_line(instances[number], self.keys) for number in numbers)
            scores, value = self.scores(log, self.args)
        except SqaError as error:  # SimulEval would print a traceback
            raise SystemExit(f"sqa: {error}") from error
        for number, score in zip(numbers, scores, strict=True):
            instances[number].metrics[self.shown] = score
        return value

    @classmethod
    def from_args(cls, args: Namespace) -> OfALog:
        scorer = cls()
        scorer.args = args
        return scorer


def _of_answers(metric: str, log: str, args: Namespace) -> tuple[Sequence[float], float]:
    """Score the answers that a translation allows; each sentence gets its question's score."""
    scores, value = _answered(log, args.sqa_questions, args.sqa_guesser, args.sqa_buzzer)
    return scores[metric], value[metric]


def _of_segments(scorer: Segmental, log: str, args: Namespace) -> tuple[Sequence[float], float]:
    """Score segments without a question set; a sentence without facts or questions has the value NaN."""
    stats = scorer.stats(log, args)
    return scorer.metric.score_many(stats).tolist(), scorer.metric.score(stats.sum(axis=0))


SCORERS: dict[str, tuple[Scores, Callable[[ArgumentParser], None], Sequence[str]]] = {
    **{shown: (partial(_of_answers, name), add_options, LOGGED) for shown, name in SHOWN.items()},
    **{shown: (partial(_of_segments, each), each.add_options, SEGMENT_KEYS) for shown, each in SEGMENTAL.items()},
}

for _shown, (_scores, _add_options, _keys) in SCORERS.items():

    @register_latency_scorer(_shown)
    class _Scorer(OfALog):
        shown, scores, keys, add_args = _shown, staticmethod(_scores), _keys, staticmethod(_add_options)


def _line(instance: Any, keys: Sequence[str]) -> str:
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
