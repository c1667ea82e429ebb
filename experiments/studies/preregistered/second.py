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
from statistics import NormalDist

import numpy as np

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Ledger, Row
from experiments.results_book.tables import number
from experiments.studies.preregistered import unseen
from experiments.studies.preregistered.questions import PACKAGES, POOL, chosen, write_questions
from experiments.studies.text_at_pace import ALPHA, EW
from sqa import metrics as metric_names
from sqa.core import FULL, Floats, holm
from sqa.data.datasets import load_questions
from sqa.results import markdown

QUESTIONS = 2016  # all usable questions after those of the first test
DEVIATION = 0.2315  # standard deviation of the differences in EW in the first test, at k = 2
SMALLEST, POWER = 0.02, 0.8  # difference that the test finds with probability POWER
KS: tuple[int, ...] = (1, 2, 3)
BUZZERS = {"rerank": "rerank-translated", "gru": "gru"}  # guesser -> its buzzer
PRIMARY = ("oracle-ew", "accuracy")
PARTS = (unseen.OWN, unseen.FULL_TEXT, unseen.HUMAN)
OUTCOMES = {metric.name: metric for metric in (*metric_names.build(list(PRIMARY)), EW)}


def needed() -> int:
    """Return how many questions find a difference of SMALLEST with probability POWER at Holm's first step."""
    tests = len(PRIMARY) * len(KS)
    quantiles = NormalDist().inv_cdf(1 - ALPHA / 2 / tests) + NormalDist().inv_cdf(POWER)
    return int(np.ceil((quantiles * DEVIATION / SMALLEST) ** 2))


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
        tests = {}
        for k, (name, metric) in product(map(str, KS), OUTCOMES.items()):
            own, full, human = (tables[guesser, text, k, name] for text in (k, FULL, unseen.HUMAN))
            *of_texts, p, detectable = unseen.outcome_rows((guesser, k), own, full, human, metric)
            yield from (*of_texts, detectable)
            tests[p.cell, name] = p
        yield from tests.values()
        primary = [row for (_, name), row in tests.items() if name in PRIMARY]
        for row, corrected in zip(primary, holm([row.value for row in primary]), strict=True):
            yield Row(row.cell, f"{row.metric} after Holm", corrected, n=row.n, unit="p")


def block(ledger: Ledger, guesser: str) -> list[str]:
    """Return a Markdown table with a row for each k and outcome of a guesser."""
    lines = []
    for k, name in product(map(str, KS), OUTCOMES):
        shown = [number(ledger.one(name, guesser=guesser, k=k, part=part), interval=False) for part in PARTS]
        names = (name, f"{name}, p", f"{name}, p after Holm", f"{name}, detectable")
        gap, p, corrected, least = (ledger.one(one, guesser=guesser, k=k, part=unseen.DIFFERENCE) for one in names)
        verdict = "secondary"
        if gap is not None and corrected is not None:
            found = "held" if gap.value > 0 else "reversed"
            verdict = found if corrected.value <= ALPHA else "not held"
        lines.append([k, name, *shown, number(gap, sign=True), number(p), number(corrected), number(least), verdict])
    head = ("k", "outcome", *PARTS, "full input minus own", "p", "p (Holm)", "detectable", "verdict")
    return markdown(head, lines)


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
