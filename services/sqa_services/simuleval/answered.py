"""Scores of a log's answers, as in `sqa run`, for scorers inside SimulEval and simulstream."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml

from sqa.core import DataError, Floats, Mean, NotComputable, Question
from sqa.files import Store
from sqa.metrics.fact_metrics import OF_LOGS, Facts
from sqa.metrics.latency_log import LogOptions
from sqa.metrics.log_lines import in_a_file
from sqa.pipeline import run, run_from_mapping
from sqa.questions.ask import ask
from sqa.questions.facts_log import JudgedLog, judged_log
from sqa.questions.files import read_questions
from sqa.questions.measures import ALL, tables
from sqa.questions.rules import Rules
from sqa.questions.texts import of_log

NAMES = ("ew", "oracle-ew", "stable-ew", "accuracy")
SHOWN = {f"SQA_{name.upper().replace('-', '_')}": name for name in NAMES}  # name in the other programs -> metric
ASKED = {"SQA_ANSWERED": "answered", "SQA_ANSWERED_EARLY": "early", "SQA_ANSWERED_LAG": "lag"}  # measures of `sqa ask`
FACTS = {f"SQA_{each.name.upper().replace('-', '_').replace('@', '_')}": each for each in OF_LOGS.values()}


class Segmental(NamedTuple):
    """A scorer of logs with one line per segment."""

    add_options: Callable[[ArgumentParser], None]
    stats: Callable[[str, Namespace], Floats]  # the statistics (segments, d) of a log's text, given the options
    metric: Facts | Mean


class Answered(NamedTuple):
    """The scores of a log."""

    questions: list[Question]
    scores: dict[str, list[float]]  # metric -> score of each question
    value: dict[str, float]  # metric -> score of all questions


def add_options(parser: ArgumentParser) -> None:
    """Add the options of a scorer: --sqa-questions, --sqa-guesser, --sqa-buzzer."""
    parser.add_argument("--sqa-questions", required=True, help="question set, or the value of `dataset:` in a config")
    parser.add_argument("--sqa-guesser", default="bm25", help="value of `guesser:` in a config")
    parser.add_argument("--sqa-buzzer", default="{name: mlp}", help="value of `buzzer:` in a config")


def add_pair(parser: ArgumentParser) -> None:
    """Add the option of a scorer of facts: --sqa-pair."""
    parser.add_argument("--sqa-pair", default="-en", help="languages, e.g. es-en, for number words and priors")


def add_asked(parser: ArgumentParser) -> None:
    """Add the option of a scorer of questions: --sqa-asked."""
    parser.add_argument("--sqa-asked", required=True, help="file of questions, made by sqa questions make")


@cache
def _judged(log: str, pair: str, texts: LogOptions) -> JudgedLog:
    """Return the facts of each sentence of a log's text."""
    with in_a_file(log) as file:
        return judged_log(str(file), pair, texts)


def _fact_stats(metric: Facts, log: str, args: Namespace) -> Floats:
    """Return the statistics of the facts of each segment; SimulEval's logs contain their sources."""
    sources = getattr(args, "sqa_sources", None)
    if sources == "" and metric.side != "arrived":
        raise NotComputable(f"{metric.name}: needs --sqa-sources, a file with one line per segment")
    texts = LogOptions(sources=Path(sources) if sources else None)
    return _judged(log, args.sqa_pair, texts).stats(metric.side)


@cache
def _asked(log: str, questions: Path) -> dict[str, Floats]:
    """Return the statistics of each sentence of a log's text by measure, for the questions of a file."""
    made = read_questions(questions)
    with in_a_file(log) as file:
        answers = ask(of_log(file, LogOptions()), made, Rules(made.pair[1]))
    return {measure: stats for kind, measure, stats in tables(answers) if kind == ALL}


def _asked_stats(measure: str, log: str, args: Namespace) -> Floats:
    return _asked(log, Path(args.sqa_asked))[measure]


def answered(log: str, questions: str, guesser: str, buzzer: str, pieces: str | None = None) -> Answered:
    """Return the scores of a log; `pieces` is the kind of its tokens.  Raises SqaError if it cannot be scored."""
    dataset = yaml.safe_load(questions)
    config = {
        "name": "scored",
        "dataset": {"name": dataset} if isinstance(dataset, str) else dataset,
        "translator": {"name": "recorded", "file": log, "pieces": pieces},
        "guesser": yaml.safe_load(guesser),
        "buzzer": yaml.safe_load(buzzer),
        "metrics": list(NAMES),
    }
    with TemporaryDirectory() as folder:
        result = run(run_from_mapping(config), Store(Path(folder)), progress=False)
        stats = result.stats
        if refused := [f"{name}: {why}" for name, why in result.refusals.items()]:
            raise DataError(refused[0])
    metrics = {metric.name: metric for metric in result.metrics}
    scores = {name: [float(metrics[name].score(row)) for row in stats[name]] for name in NAMES}
    value = {name: float(metrics[name].score(stats[name].sum(axis=0))) for name in NAMES}
    return Answered(result.questions, scores, value)


SEGMENTAL = {  # name in the other programs -> scorer
    **{shown: Segmental(add_pair, partial(_fact_stats, metric), metric) for shown, metric in FACTS.items()},
    **{shown: Segmental(add_asked, partial(_asked_stats, name), Mean(name)) for shown, name in ASKED.items()},
}
