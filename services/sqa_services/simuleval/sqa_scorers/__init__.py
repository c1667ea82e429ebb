"""Expected wins inside SimulEval: a folder for its `--user-dir` that registers SQA_EW and its kin as latency metrics.

    simuleval --user-dir $(sqa simuleval-dir) --latency-metrics AL SQA_EW --sqa-questions mini-es --sqa-guesser bm25 ...

The sentences must be those of a question set, in order: `sqa questions SET` writes them.  The output is answered as
`sqa run` answers the same log, so the numbers are the same.  `--score-only` scores old logs.

SQA_FACTS, SQA_FACTS_INVENTED, SQA_FACTS_LAG and SQA_FACTS_TIMED want references and no questions, and are those of
`sqa latency LOG --facts`.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from simuleval.evaluator.scorers.latency_scorer import LatencyScorer, register_latency_scorer

from sqa.core.errors import DataError, SqaError
from sqa.core.types import Floats
from sqa.metrics.fact_metrics import SIDES, Facts, Side
from sqa.metrics.facts_log import FactOptions, judged_lines
from sqa_services.simuleval.answered import FACTS, SHOWN, add_options, answered

FACT_KEYS = ("index", "prediction", "delays", "reference", "source", "source_length")
LOGGED = ("index", "prediction", "delays", "prediction_length", "source", "source_length", "elapsed", "metric")


class OfAnswers(LatencyScorer):
    """A metric of the answers that a translation allows; in metrics.tsv a sentence has its question's score."""

    metric = "ew"
    options = Namespace(sqa_questions="", sqa_guesser="bm25", sqa_buzzer="{name: mlp}")
    add_args = staticmethod(add_options)

    def __call__(self, instances: dict[int, Any]) -> float:
        log = "".join(_line(instances[number]) for number in sorted(instances))
        try:
            scores, value = _answered(log, *map(str, vars(self.options).values()))
        except SqaError as error:  # SimulEval would show a traceback
            raise SystemExit(f"sqa: {error}") from error
        for number, score in zip(sorted(instances), scores[self.metric], strict=True):
            instances[number].metrics[self.metric_name] = score
        return value[self.metric]

    @classmethod
    def from_args(cls, args: Namespace) -> OfAnswers:
        scorer = cls()
        scorer.options = Namespace(**{name: getattr(args, name) for name in vars(cls.options)})
        return scorer


for _shown, _name in SHOWN.items():
    register_latency_scorer(_shown)(type(_shown, (OfAnswers,), {"metric": _name}))


class OfFacts(LatencyScorer):
    """Facts of the references (docs/facts.md): no questions are needed; in metrics.tsv a sentence has its own score."""

    metric = Facts()
    pair = "-en"

    def __call__(self, instances: dict[int, Any]) -> float:
        log = "".join(_line(instances[number], FACT_KEYS) for number in sorted(instances))
        try:
            stats = _facts(log, self.pair)[self.metric.side]
            value = self.metric.score(stats.sum(axis=0))
        except SqaError as error:
            raise SystemExit(f"sqa: {error}") from error
        scores = self.metric.score_many(stats)
        for number, score in zip(sorted(instances), scores.tolist(), strict=True):
            instances[number].metrics[self.metric_name] = score  # nan: no fact in the sentence
        return value

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        parser.add_argument("--sqa-pair", default="-en", help="languages, as es-en: number words, the aligner's priors")

    @classmethod
    def from_args(cls, args: Namespace) -> OfFacts:
        scorer = cls()
        scorer.pair = args.sqa_pair
        return scorer


for _shown, _built in FACTS.items():
    register_latency_scorer(_shown)(type(_shown, (OfFacts,), {"metric": _built}))


@cache
def _facts(log: str, pair: str) -> dict[Side, Floats]:
    """Side -> statistics of each sentence of a log's text."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "instances.log"
        file.write_text(log, encoding="utf-8")
        lines = judged_lines(str(file), FactOptions(pair))
    return {side: np.array([line.stats(side) for line in lines]) for side in SIDES}


def _line(instance: Any, keys: Sequence[str] = LOGGED) -> str:
    """A line of instances.log, as SimulEval writes it and `recorded` reads it."""
    row = instance.info if hasattr(instance, "info") else instance.summarize()
    return json.dumps({key: row[key] for key in keys if key in row}) + "\n"


@cache
def _answered(log: str, questions: str, guesser: str, buzzer: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """(metric -> the score of each sentence's question, metric -> the score of all), of a log's text."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "instances.log"
        file.write_text(log, encoding="utf-8")
        result = answered(file, questions, guesser, buzzer)
    of_sentence = [index for index, question in enumerate(result.questions) for _ in question.sentences]
    if len(of_sentence) != (written := log.count("\n")):
        raise DataError(f"--sqa-questions: has {len(of_sentence)} sentences, SimulEval {written}; set its `limit`")
    return {name: [row[index] for index in of_sentence] for name, row in result.scores.items()}, result.value
