"""Preregistered test on unseen questions: does the full-input text win more than wait-k's text at the same pace?

README.md in this folder states the claim, the questions, the analysis and the stopping rule.  It was committed before
any question was translated.

    difference   EW of the full-input text minus EW of the text at k, both at the pace of k
    test         one-sided permutation test at each k of KS: the two texts of a question are exchanged at random; Holm
                 over KS

Oracle EW and accuracy of the same texts were added after the result of the test was known, with two-sided tests.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import NormalDist

import numpy as np

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Ledger, Row, row_of
from experiments.results_book.tables import number
from experiments.studies.preregistered.questions import PACKAGES, POOL, chosen, write_questions
from experiments.studies.text_at_pace import ALPHA, EW, PERMUTATIONS, at_pace
from sqa import metrics as metric_names
from sqa.api.experiment import Entry, Experiment, Results
from sqa.core import FULL, BuiltMetric, Floats, bootstrap, compare, holm, null_of, p_value
from sqa.data.datasets import load_questions
from sqa.pipeline import intervals
from sqa.results import markdown

QUESTIONS = 464  # `needed` of the XQB differences known when this was written
DEVIATION = (
    0.153697  # standard deviation of XQB's differences at k = 2, in the values of text-at-pace at commit 804a1264
)
SMALLEST, POWER = 0.02, 0.8  # difference in EW that the test finds with probability POWER
KS: tuple[int, ...] = (2, 3)
OWN, FULL_TEXT, HUMAN, DIFFERENCE = "own text", "full-input text", "human text", "difference"
ADDED = metric_names.build(["oracle-ew", "accuracy"])  # outcomes that were not registered
DETECTED = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(POWER)  # standard errors found with probability POWER
Tables = dict[tuple[str, ...], Floats]


def needed() -> int:
    """Return the number of questions needed to detect a difference of SMALLEST with probability POWER.

    The level is that of Holm's first step over KS, one-sided.
    """
    quantiles = NormalDist().inv_cdf(1 - ALPHA / len(KS)) + NormalDist().inv_cdf(POWER)
    return int(np.ceil((quantiles * DEVIATION / SMALLEST) ** 2))


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


def outcome_rows(cell: tuple[str, ...], own: Floats, full: Floats, human: Floats, metric: BuiltMetric) -> list[Row]:
    """Return the rows of the three texts, their difference, its two-sided p, and the detectable difference."""
    texts = {OWN: own, FULL_TEXT: full, HUMAN: human}
    about = metric.name, metric.unit, metric.signature()
    rows = [row_of((*cell, part), about[0], bootstrap(stats, metric), *about[1:]) for part, stats in texts.items()]
    gap, error = (
        compare(full, own, metric, PERMUTATIONS),
        np.std(full[:, 0] / full[:, 1] - own[:, 0] / own[:, 1], ddof=1),
    )
    detectable, where = float(DETECTED * error / np.sqrt(len(own))), (*cell, DIFFERENCE)
    rows += [row_of(where, about[0], gap, *about[1:]), Row(where, f"{metric.name}, p", gap.p, n=len(own), unit="p")]
    return [*rows, Row(where, f"{metric.name}, detectable", detectable, n=len(own), unit=metric.unit)]


def rows(tables: Mapping[tuple[str, ...], Floats]) -> Iterator[Row]:
    """Yield the outcomes of each text, the differences, and the p-values of the test before and after Holm."""
    tests = []
    for k, metric in product(map(str, KS), (EW, *ADDED)):
        own, full, human = (tables[name, k, metric.name] for name in (k, FULL, HUMAN))
        *of_texts, p, detectable = outcome_rows((k,), own, full, human, metric)
        if metric is EW:
            tests.append(Row((k, DIFFERENCE), "p", p_of(full, own), n=len(own), unit="p"))
        yield from (*of_texts, replace(p, metric=f"{metric.name}, two-sided p"), detectable)
    yield from tests
    for row, corrected in zip(tests, holm([row.value for row in tests]), strict=True):
        yield Row(row.cell, "p after Holm", corrected, n=row.n, unit="p")


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


def block(ledger: Ledger) -> list[str]:
    """Return a Markdown table with a row for each k."""
    lines = []
    for k in map(str, KS):
        shown = [number(ledger.one("ew", k=k, part=part), interval=False) for part in (OWN, FULL_TEXT, HUMAN)]
        gap = number(ledger.one("ew", k=k, part=DIFFERENCE), sign=True)
        p, corrected = (ledger.one(metric, k=k, part=DIFFERENCE) for metric in ("p", "p after Holm"))
        assert corrected is not None
        verdict = "held" if corrected.value <= ALPHA else "not held"
        lines.append([k, *shown, gap, number(p), number(corrected), verdict])
    head = ("k", OWN, FULL_TEXT, HUMAN, "full input minus own", "p", "p (Holm)", "verdict")
    return markdown(head, lines)


def other_outcomes(ledger: Ledger) -> list[str]:
    """Return a Markdown table with a row for each k and outcome, among them those that were not registered."""
    lines = []
    for k, outcome in product(map(str, KS), ("ew", *(metric.name for metric in ADDED))):
        names = (outcome, f"{outcome}, two-sided p", f"{outcome}, detectable")
        gap, p, least = (ledger.one(name, k=k, part=DIFFERENCE) for name in names)
        lines.append([k, outcome, number(gap, sign=True), number(p), number(least)])
    return markdown(("k", "outcome", "full input minus own", "p, two-sided", "detectable"), lines)


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
        blocks={"table": block, "other outcomes": other_outcomes},
        values=lambda _, runs: at_paces(of_questions(runs)),
        kept=f"needs {PACKAGES} and the recorded questions",
    ),
)
