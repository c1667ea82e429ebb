"""Preregistered test on unseen questions: does the full-input text win more than wait-k's text at the same pace?

README.md in this folder states the claim, the questions, the analysis and the stopping rule.  It was committed before
any question was translated.

    difference   EW of the full-input text minus EW of the text at k, both at the pace of k
    test         one-sided permutation test at each k of KS: the two texts of a question are exchanged at random; Holm
                 over KS

Oracle EW and accuracy of the same texts were added after the result of the test was known, with two-sided tests.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import NormalDist

import numpy as np

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Ledger, Row, after_holm, measured, row_of
from experiments.results_book.tables import Cell, Column, found, pivot, table
from experiments.studies.preregistered.questions import PACKAGES, POOL, chosen, write_questions
from experiments.studies.text_at_pace import ALPHA, EW, FULL_TEXT, HUMAN, OWN, PERMUTATIONS, TEXTS, at_pace
from sqa import metrics as metric_names
from sqa.api.experiment import Entry, Experiment, Results
from sqa.core import FULL, BuiltMetric, Floats, compare, null_of, p_value
from sqa.data.datasets import load_questions
from sqa.pipeline import intervals

QUESTIONS = 464  # `needed` of the XQB differences known when this was written
# Standard deviation of XQB's differences at k = 2, in the values of text-at-pace at commit 804a1264.
DEVIATION = 0.153697
SMALLEST, POWER = 0.02, 0.8  # difference in EW that the test finds with probability POWER
KS: tuple[int, ...] = (2, 3)
DIFFERENCE = "difference"
ADDED = metric_names.build(["oracle-ew", "accuracy"])  # outcomes that were not registered
DETECTED = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(POWER)  # standard errors found with probability POWER
LEVEL = ALPHA / len(KS)  # of Holm's first step over KS, one-sided
Tables = dict[tuple[str, ...], Floats]


def needed(level: float, deviation: float) -> int:
    """Return the number of questions needed to detect a difference of SMALLEST with probability POWER.

    level: one-sided level of the test.  deviation: standard deviation of the differences.
    """
    quantiles = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(POWER)
    return int(np.ceil((quantiles * deviation / SMALLEST) ** 2))


def played(path: Path, runs: Path, ks: Sequence[int], guesser: str, buzzer: str) -> Results:
    """Return the runs of the text at each k, at full input, and of people; missing runs are computed."""
    entries = [Entry(str(k), {"name": "waitk", "model": "es-en", "k": k}) for k in (*ks, FULL)]
    entries.append(Entry(HUMAN, {"name": "fixed", "text": "reference", "unit": "sentence"}))
    guessers = {guesser: (guesser, {"name": "mlp", "model": buzzer})}
    return Experiment(entries, guessers, dataset=str(path), metrics=["ew", "bleu"], name=path.stem, runs=runs).run()


def p_of(full: Floats, own: Floats) -> float:
    """Return the one-sided p-value of "the full-input text wins more", from statistics (n, 2) of EW."""

    def gap(sums: Floats) -> Floats:  # (b, texts, 2) -> (b, 1)
        scores = EW.score_many(sums.reshape(-1, 2)).reshape(-1, 2)
        return np.asarray(scores[:, :1] - scores[:, 1:])

    table = np.stack([full, own], axis=1)
    return float(p_value(gap(table.sum(axis=0)[None])[0], null_of(table, gap, PERMUTATIONS, 0))[0])


def at_paces(results: Results, ks: Sequence[int] = KS) -> Tables:
    """Return statistics (n, 2) by (text, k of the pace, metric), for the text at k, full input and the human text."""
    traces = {result.translator: list(result.run.traces) for result in results}
    cells = product(ks, (EW, *ADDED))
    return {(name, str(k), m.name): at_pace(traces[name], k, m) for k, m in cells for name in (str(k), FULL, HUMAN)}


def outcome_rows(
    cell: tuple[str, ...], own: Floats, full: Floats, human: Floats, metric: BuiltMetric, test: str = "p"
) -> list[Row]:
    """Return the rows of the three texts, their difference, its two-sided p, and the detectable difference.

    test: how the metric of the p-value is called.
    """
    texts = {OWN: own, FULL_TEXT: full, HUMAN: human}
    gap, where = compare(full, own, metric, PERMUTATIONS), (*cell, DIFFERENCE)
    error = np.std(full[:, 0] / full[:, 1] - own[:, 0] / own[:, 1], ddof=1)
    detectable = float(DETECTED * error / np.sqrt(len(own)))
    return [
        *(measured((*cell, part), metric, stats) for part, stats in texts.items()),
        row_of(where, metric.name, gap, metric.unit, metric.signature()),
        Row(where, f"{metric.name}, {test}", gap.p, n=len(own), unit="p"),
        Row(where, f"{metric.name}, detectable", detectable, n=len(own), unit=metric.unit),
    ]


def rows(tables: Mapping[tuple[str, ...], Floats]) -> Iterator[Row]:
    """Yield the outcomes of each text, the differences, and the p-values of the test before and after Holm."""
    tests = []
    for k, metric in product(map(str, KS), (EW, *ADDED)):
        own, full, human = (tables[name, k, metric.name] for name in (k, FULL, HUMAN))
        yield from outcome_rows((k,), own, full, human, metric, "two-sided p")
        if metric is EW:
            tests.append(Row((k, DIFFERENCE), "p", p_of(full, own), n=len(own), unit="p"))
    yield from (*tests, *after_holm(tests))


def of_questions(runs: Path) -> Results:
    """Choose and translate the questions, and return the runs on them."""
    path = runs / "unseen.jsonl"
    write_questions(chosen(load_questions(POOL), QUESTIONS), path)
    return played(path, runs, KS, "rerank", "rerank-translated")


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of the test, and BLEU of each text as a description."""
    results = of_questions(runs)
    yield from rows(at_paces(results))
    [bleu] = metric_names.build(["bleu"])
    for result in results:
        yield from intervals((result.translator, "own pace"), [(bleu, result.stats["bleu"])])


def verdict(ledger: Ledger, cell: Cell, corrected: str = "p after Holm") -> str:
    """Return the result of a test in words; an outcome without a corrected p-value is secondary."""
    gap, p = (found(ledger, metric, cell) for metric in ("{metric}", corrected))
    if gap is None or p is None:
        return "secondary"
    return "not held" if p.value > ALPHA else "held" if gap.value > 0 else "reversed"


def other_outcomes(ledger: Ledger) -> list[str]:
    """Return a Markdown table with a row for each k and outcome, among them those that were not registered."""
    outcomes = product(map(str, KS), ("ew", *(metric.name for metric in ADDED)))
    cells = [((k, outcome), {"k": k, "metric": outcome}) for k, outcome in outcomes]
    tests = [of_gap("{metric}, two-sided p", "p, two-sided"), of_gap("{metric}, detectable", "detectable")]
    return table(ledger, ("k", "outcome"), cells, [MINUS, *tests])


of_gap = partial(Column, cell={"part": DIFFERENCE})
MINUS = of_gap("{metric}", "full input minus own", sign=True)
TESTS = [of_gap("p", "p"), of_gap("p after Holm", "p (Holm)"), of_gap("", "verdict", text=verdict)]
ITEMS = (
    Item(
        name="unseen-questions",
        shows="preregistered test on unseen questions: full-input text and wait-k's text at the same pace",
        config="",
        columns=("k", "part"),
        measure=measure,
        inputs=inputs_of(
            ("waitk", "es-en", "bm25", "rerank", "mlp", "buzzer-mlp-rerank-translated"), ("human-buzz-questions",)
        ),
        blocks={"table": pivot(("k",), [*TEXTS, MINUS, *TESTS], metric="ew"), "other outcomes": other_outcomes},
        values=lambda _, runs: at_paces(of_questions(runs)),
        kept=f"needs {PACKAGES} and the recorded questions",
    ),
)
