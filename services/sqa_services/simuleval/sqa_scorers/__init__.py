"""Expected wins inside SimulEval: a folder for its `--user-dir` that registers SQA_EW and its kin as latency metrics.

    simuleval --user-dir $(sqa simuleval-dir) --latency-metrics AL SQA_EW --sqa-questions mini-es --sqa-guesser bm25 ...

The sentences must be those of a question set, in order: `sqa questions SET` writes them.  The output is answered as
`sqa run` answers the same log, so the numbers are the same.  `--score-only` scores old logs.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from simuleval.evaluator.scorers.latency_scorer import LatencyScorer, register_latency_scorer

from sqa.core.errors import DataError, SqaError
from sqa.files.store import Store
from sqa.run.config import run_from_mapping
from sqa.run.pipeline import run

NAMES = ("ew", "oracle-ew", "stable-ew", "accuracy")
LOGGED = ("index", "prediction", "delays", "prediction_length", "source", "source_length", "elapsed", "metric")


class OfAnswers(LatencyScorer):
    """A metric of the answers that a translation allows; in metrics.tsv a sentence has its question's score."""

    metric = "ew"
    options = Namespace(sqa_questions="", sqa_guesser="bm25", sqa_buzzer="{name: mlp}")

    def __call__(self, instances: dict[int, Any]) -> float:
        log = "".join(_line(instances[number]) for number in sorted(instances))
        try:
            scores, value = _answered(log, *map(str, vars(self.options).values()))
        except SqaError as error:  # SimulEval would show a traceback
            raise SystemExit(f"sqa: {error}") from error
        for number, score in zip(sorted(instances), scores[self.metric], strict=True):
            instances[number].metrics[self.metric_name] = score
        return value[self.metric]

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        parser.add_argument("--sqa-questions", required=True, help="question set, or as under `dataset:` in a config")
        parser.add_argument("--sqa-guesser", default="bm25", help="as under `guesser:` in a config")
        parser.add_argument("--sqa-buzzer", default="{name: mlp}", help="as under `buzzer:` in a config")

    @classmethod
    def from_args(cls, args: Namespace) -> OfAnswers:
        made = cls()
        made.options = Namespace(**{name: getattr(args, name) for name in vars(cls.options)})
        return made


for _name in NAMES:
    _shown = f"SQA_{_name.upper().replace('-', '_')}"
    register_latency_scorer(_shown)(type(_shown, (OfAnswers,), {"metric": _name}))


def _line(instance: Any) -> str:
    """A line of instances.log, as SimulEval writes it and `recorded` reads it."""
    row = instance.info if hasattr(instance, "info") else instance.summarize()
    return json.dumps({key: row[key] for key in LOGGED if key in row}) + "\n"


@cache
def _answered(log: str, questions: str, guesser: str, buzzer: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """(metric -> the score of each sentence's question, metric -> the score of all), of a log's text."""
    dataset = yaml.safe_load(questions)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "instances.log"
        file.write_text(log, encoding="utf-8")
        config = {
            "name": "simuleval",
            "dataset": {"name": dataset} if isinstance(dataset, str) else dataset,
            "translator": {"name": "recorded", "file": str(file)},
            "guesser": yaml.safe_load(guesser),
            "buzzer": yaml.safe_load(buzzer),
            "metrics": list(NAMES),
        }
        result = run(run_from_mapping(config), Store(Path(folder)), progress=False)
        stats = result.stats
    if refused := [f"{name}: {why}" for name, why in result.refusals.items()]:
        raise DataError(refused[0])
    of_sentence = [place for place, question in enumerate(result.questions) for _ in question.sentences]
    if len(of_sentence) != (written := log.count("\n")):
        raise DataError(f"--sqa-questions: has {len(of_sentence)} sentences, SimulEval {written}; set its `limit`")
    metrics = {metric.name: metric for metric in result.metrics}
    scores = {name: [float(metrics[name].score(stats[name][place])) for place in of_sentence] for name in NAMES}
    return scores, {name: float(metrics[name].score(stats[name].sum(axis=0))) for name in NAMES}
