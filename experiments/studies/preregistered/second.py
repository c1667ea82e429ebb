"""Second preregistered test on unseen questions, with outcomes that do not depend on the buzzer.

SECOND.md in this folder states the claim, the questions, the analysis and the stopping rule.  It was committed before
any question was translated.

    difference   the full-input text minus the text at k, both at the pace of k
    test         two-sided approximate randomisation; Holm over PRIMARY and KS, for each guesser
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Ledger, Row, after_holm
from experiments.results_book.tables import table
from experiments.studies.preregistered import unseen
from experiments.studies.preregistered.questions import PACKAGES, POOL, chosen, write_questions
from experiments.studies.text_at_pace import ALPHA, EW, HUMAN, TEXTS
from sqa import metrics as metric_names
from sqa.core import FULL, Floats
from sqa.data.datasets import load_questions

QUESTIONS = 2016  # all usable questions after those of the first test
DEVIATION = 0.2315  # standard deviation of the differences in EW in the first test, at k = 2
KS: tuple[int, ...] = (1, 2, 3)
BUZZERS = {"rerank": "rerank-translated", "gru": "gru"}  # guesser -> its buzzer
PRIMARY = ("oracle-ew", "accuracy")
LEVEL = ALPHA / 2 / (len(PRIMARY) * len(KS))  # of Holm's first step, two-sided
OUTCOMES = {metric.name: metric for metric in (*metric_names.build(list(PRIMARY)), EW)}


def statistics(runs: Path) -> dict[tuple[str, ...], Floats]:
    """Return statistics (n, 2) by (guesser, text, k of the pace, metric); missing runs are computed."""
    path = runs / "unseen-second.jsonl"
    after = unseen.QUESTIONS
    write_questions(chosen(load_questions(POOL), after + QUESTIONS)[after:], path)
    tables: unseen.Tables = {}
    for guesser, buzzer in BUZZERS.items():
        results = unseen.played(path, runs, KS, guesser, buzzer)
        tables |= {(guesser, *cell): table for cell, table in unseen.at_paces(results, KS).items()}
    return tables


def rows(tables: Mapping[tuple[str, ...], Floats]) -> Iterator[Row]:
    """Yield the outcomes of each text, and the differences with their p-values, before and after Holm."""
    for guesser in BUZZERS:
        tests = []
        for k, (name, metric) in product(map(str, KS), OUTCOMES.items()):
            own, full, human = (tables[guesser, text, k, name] for text in (k, FULL, HUMAN))
            *of_texts, p, detectable = unseen.outcome_rows((guesser, k), own, full, human, metric)
            yield from (*of_texts, detectable)
            tests.append(p)
        yield from tests
        yield from after_holm([row for row in tests if row.metric.removesuffix(", p") in PRIMARY])


def block(ledger: Ledger, guesser: str) -> list[str]:
    """Return a Markdown table with a row for each k and outcome of a guesser."""
    cells = [((k, name), {"guesser": guesser, "k": k, "metric": name}) for k, name in product(map(str, KS), OUTCOMES)]
    return table(ledger, ("k", "outcome"), cells, [*TEXTS, unseen.MINUS, *TESTS])


CORRECTED = "{metric}, p after Holm"
TESTS = [
    unseen.of_gap("{metric}, p", "p"),
    unseen.of_gap(CORRECTED, "p (Holm)"),
    unseen.of_gap("{metric}, detectable", "detectable"),
    unseen.of_gap("", "verdict", text=partial(unseen.verdict, corrected=CORRECTED)),
]
ITEMS = (
    Item(
        name="unseen-second",
        shows="second preregistered test on unseen questions: oracle EW and accuracy, two guessers",
        config="",
        columns=("guesser", "k", "part"),
        measure=lambda _, runs: rows(statistics(runs)),
        inputs=inputs_of(
            ("waitk", "es-en", "bm25", "rerank", "gru", "mlp", "buzzer-mlp-rerank-translated", "buzzer-mlp-gru"),
            ("human-buzz-questions",),
        ),
        blocks={guesser: partial(block, guesser=guesser) for guesser in BUZZERS},
        values=lambda _, runs: statistics(runs),
        kept=f"needs {PACKAGES} and the recorded questions",
    ),
)
