"""Expected wins inside SimulEval: a folder for its `--user-dir` that registers SQA_EW and its kin as latency metrics.

    simuleval --user-dir $(sqa simuleval-dir) --latency-metrics AL SQA_EW --sqa-questions mini-es --sqa-guesser bm25 ...

The sentences must be those of a question set, in order: `sqa questions SET` writes them.  The output is answered as
`sqa run` answers the same log, so the numbers are the same.  `--score-only` scores old logs.
"""

from __future__ import annotations

import json
from argparse import Namespace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from simuleval.evaluator.scorers.latency_scorer import LatencyScorer, register_latency_scorer

from sqa.core.errors import DataError, SqaError
from sqa_services.simuleval.answered import SHOWN, add_options, answered

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
        made = cls()
        made.options = Namespace(**{name: getattr(args, name) for name in vars(cls.options)})
        return made


for _shown, _name in SHOWN.items():
    register_latency_scorer(_shown)(type(_shown, (OfAnswers,), {"metric": _name}))


def _line(instance: Any) -> str:
    """A line of instances.log, as SimulEval writes it and `recorded` reads it."""
    row = instance.info if hasattr(instance, "info") else instance.summarize()
    return json.dumps({key: row[key] for key in LOGGED if key in row}) + "\n"


@cache
def _answered(log: str, questions: str, guesser: str, buzzer: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """(metric -> the score of each sentence's question, metric -> the score of all), of a log's text."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "instances.log"
        file.write_text(log, encoding="utf-8")
        found = answered(file, questions, guesser, buzzer)
    of_sentence = [place for place, question in enumerate(found.questions) for _ in question.sentences]
    if len(of_sentence) != (written := log.count("\n")):
        raise DataError(f"--sqa-questions: has {len(of_sentence)} sentences, SimulEval {written}; set its `limit`")
    return {name: [row[place] for place in of_sentence] for name, row in found.scores.items()}, found.value
