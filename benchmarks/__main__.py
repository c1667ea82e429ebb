"""Compare fast paths with plain ones and with other programs: `make bench`.

Prints TSV with the columns what, unit, plain, fast and ratio.  A comparison whose package is not installed, or whose
server is not given, is skipped with a line on stderr.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, run
from typing import Any

import yaml

from benchmarks import compare_ctranslate2, compare_simuleval
from benchmarks.measuring import MODEL, K, Pairs, dataset, length, rate, translator
from sqa.core import GUESSERS, Question, usable
from sqa.data.datasets import load_questions
from sqa.pipeline import stream
from sqa.pipeline.engine import N_GUESSES
from sqa.results import Table, show

STREAMED, GUESSED = 6, 4  # numbers of questions for the plain paths, which are slow


def decoding(questions: Sequence[Question]) -> Pairs:
    """Yield words per second of the bundled Spanish model: streaming and batched."""
    model = translator("waitk", model=MODEL, k=K)
    model.translate_batch(questions[:1])  # warm-up
    plain = rate(lambda: [stream(model, question) for question in questions[:STREAMED]])
    fast = rate(lambda: model.translate_batch(questions))
    yield "wait-k decoding: streaming, batched", "words/s", plain, fast


def guessing(questions: Sequence[Question]) -> Pairs:
    """Yield guess steps per second: every prefix from scratch, and incremental."""
    texts = [question.reference_text.split() for question in questions]

    def alone(guesser: Any) -> list[list]:
        prefixes = [" ".join(words[: i + 1]) for words in texts[:GUESSED] for i in range(len(words))]
        return [guesser.guess([prefix], N_GUESSES) for prefix in prefixes]

    def together(guesser: Any) -> list[list]:
        return [guesser.guess_prefixes(words, N_GUESSES) for words in texts]

    for name in ("bm25", "gru"):
        guesser = GUESSERS.build(name, GUESSERS.config_class(name)())
        together(guesser)  # warm-up
        speeds = rate(partial(alone, guesser)), rate(partial(together, guesser))
        yield f"{name} guessing: from scratch, incremental", "steps/s", *speeds
    networks = [GUESSERS.build("gru", GUESSERS.config_class("gru")(dtype=dtype)) for dtype in ("float64", "float32")]
    yield "gru guessing: float64, float32", "steps/s", *(rate(partial(together, each), rounds=3) for each in networks)


def searching(questions: Sequence[Question]) -> Pairs:
    """Yield guess steps per second of an Elasticsearch server at ELASTICSEARCH_URL, and of embedded BM25."""
    if "ELASTICSEARCH_URL" in os.environ:
        words = [question.reference_text.split() for question in questions[:GUESSED]]
        texts = [[" ".join(line[: i + 1]) for i in range(len(line))] for line in words]
        guessers = [GUESSERS.build(name, GUESSERS.config_class(name)()) for name in ("elasticsearch", "bm25")]
        speeds = [rate(lambda g=g: [g.guess(prefixes, N_GUESSES) for prefixes in texts]) for g in guessers]
        yield "BM25: Elasticsearch, embedded", "steps/s", speeds[0], speeds[1]


def workers(questions: Sequence[Question]) -> Pairs:
    """Yield source words per second of `sqa run` on all questions with one worker, and with one per processor."""
    parts = {"translator": {"name": "waitk", "model": MODEL, "k": K}, "guesser": "bm25", "buzzer": "mlp"}
    words, speeds = length(question.words for question in questions), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "run.yaml"
        config.write_text(yaml.safe_dump({"dataset": {"name": dataset(), "limit": len(questions)}, **parts}), "utf-8")
        for number in (1, usable()):
            options = ["--runs", f"{folder}/{number}", "--workers", str(number)]
            command = [sys.executable, "-m", "sqa", "run", str(config), *options]
            speeds.append(rate(partial(run, command, check=True, stdout=DEVNULL), lambda _: words))
    yield f"whole run: 1 worker, {usable()} workers", "words/s", *speeds


def main(limit: int | None = None) -> None:
    """Measure every pair and print the table; `limit` is the number of questions, by default all."""
    questions, rows = load_questions(dataset(), limit=limit), []
    for package, compare in (
        ("torch", decoding),
        ("simuleval", compare_simuleval.decoding),
        ("ctranslate2", compare_ctranslate2.decoding),
        ("simuleval", compare_simuleval.latency),
        ("torch", guessing),
        ("elasticsearch", searching),
        ("torch", workers),
    ):
        if find_spec(package):
            rows += [(*pair, pair[3] / pair[2]) for pair in compare(questions)]
        else:
            print(f"skipped: {compare.__module__}.{compare.__name__} needs {package}", file=sys.stderr)
    header = ("what", "unit", "plain", "fast", "ratio")
    show(Table(header, rows, dict.fromkeys(header, 1)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
