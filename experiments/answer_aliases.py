"""How much does it matter that right answers are matched strictly?

    python -m experiments.answer_aliases configs/xqb_es_wait6_bm25.yaml configs/xqb_pl_wait6_gru.yaml --list

Each run's metrics of answers, strictly and as Quizbowl matches them (sqa/core/answers.py:Accepted), on the same traces:
both values, their paired difference with its 95% interval over questions, and the questions whose value differs.  With
--list then the final guesses that only the generous rule takes.  What the store holds is not made again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sqa import metrics as metric_names
from sqa.core.errors import NotComputable, returns_exit_code
from sqa.core.interfaces import BuiltMetric
from sqa.core.significance import Comparison, compare_many
from sqa.data import answer_aliases
from sqa.files.store import Store
from sqa.run.config import AnswersConfig, RunConfig, load_run
from sqa.run.folder import tsv
from sqa.run.parts import Parts
from sqa.run.pipeline import RunResult
from sqa.run.pipeline import run as run_stages

MEASURES = ("ew", "oracle-ew", "stable-ew", "accuracy", "mrr")
RESAMPLES = 1000
HEADER = ("run", "metric", "n", "strict", "aliases", "difference", "low", "high", "changed")
TAKEN = ("run", "question", "answer", "guess")


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; with --list a second one."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.answer_aliases", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("configs", type=Path, nargs="+", help="configs of runs, each with a guesser and a buzzer")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the store")
    parser.add_argument("--list", action="store_true", help="also list what only the generous rule takes")
    options = parser.parse_args(arguments)
    store, parts = Store(options.runs), Parts()
    results = [run_stages(both_rules(load_run(path)), store, parts=parts) for path in options.configs]
    print(tsv(HEADER, [row for result in results for row in rows_of(result)]), end="")
    if options.list:
        print(tsv(("", *TAKEN), [("", *row) for result in results for row in taken(result)]), end="")


def both_rules(config: RunConfig) -> RunConfig:
    """The run with `MEASURES` by both rules, and nothing else."""
    return replace(config, metrics=MEASURES, quality=(), answers=AnswersConfig("aliases"))


def rows_of(result: RunResult) -> Iterator[tuple[str, ...]]:
    """The cells of each measure."""
    for metric, c, changed in differences(result):
        numbers = (f"{x:.6f}" for x in (c.b, c.a, c.diff, c.low, c.high))
        yield result.config.name, metric.name, str(c.n), *numbers, str(changed)


def differences(result: RunResult) -> Iterator[tuple[BuiltMetric, Comparison, int]]:
    """(metric, aliases minus strict, questions whose value differs).  A metric without a value: NotComputable."""
    for refusal in result.refusals.values():
        raise NotComputable(refusal)
    strict = metric_names.build(MEASURES)
    pairs = [(result.stats[f"{name}@aliases"], result.stats[name]) for name in MEASURES]
    found = compare_many(pairs, strict, RESAMPLES, result.config.seed)
    for metric, (generous, exact), c in zip(strict, pairs, found, strict=True):
        yield metric, c, int((generous != exact).any(axis=1).sum())


def taken(result: RunResult) -> Iterator[tuple[str, ...]]:
    """Every final guess that only the generous rule takes: run, question, its page, the guess."""
    rule = answer_aliases.bundled()
    for trace in result.traces:
        guesses = trace.guesses[-1] if trace.guesses else ()
        page = trace.question.page
        if guesses and int(trace.rank[-1]) != 1 and rule.is_right(guesses[0].page, page):
            yield result.config.name, trace.question.id, page, guesses[0].page


if __name__ == "__main__":
    sys.exit(main())
