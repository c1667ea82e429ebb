"""Preregistered test on unseen questions: does the full-input text win more than wait-k's text at the same pace?

README.md in this folder states the claim, the questions, the analysis and the stopping rule.  It was committed before
any question was translated.

    difference   EW of the full-input text minus EW of the text at k, both at the pace of k
    test         one-sided permutation test at each k of KS: the two texts of a question are exchanged at random; Holm
                 over KS

Oracle EW and accuracy of the same texts were added after the result of the test was known, with two-sided tests.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Ledger, Row, row_of
from experiments.results_book.pages import read_values
from experiments.results_book.tables import number
from experiments.studies.preregistered.repeats import nearest
from experiments.studies.text_at_pace import ALPHA, EW, PERMUTATIONS, at_pace
from sqa import metrics as metric_names
from sqa.core.answers import key
from sqa.core.differences import compare, holm, null_of, p_value
from sqa.core.errors import DataError
from sqa.core.registry import GUESSERS
from sqa.core.schema import FULL, K
from sqa.core.significance import bootstrap
from sqa.core.types import Floats, Question
from sqa.data.datasets import load_questions
from sqa.data.own_questions import record_of
from sqa.data.sentences import split
from sqa.files.atomic import write_text
from sqa.pipeline.config import RunConfig, read_parts, run_from_mapping
from sqa.pipeline.folder import RunFolder
from sqa.pipeline.paired import intervals
from sqa.pipeline.parts import Parts
from sqa.pipeline.runner import run_all
from sqa.results import markdown

POOL, TRAINING = "human-buzzes", ("tossups",)
MODES = ("eng-cat", "cat-spa")  # Apertium pairs, used in sequence; no translator here was trained on their output
PACKAGES = "apertium-eng-cat and apertium-spa-cat"
QUESTIONS = 464  # `needed` of the XQB differences known when this was written
SMALLEST, POWER = 0.02, 0.8  # difference in EW that the test finds with probability POWER
KS: tuple[int, ...] = (2, 3)
TEXTS: tuple[K, ...] = (*KS, FULL)
GUESSER = {"name": "rerank"}
HUMAN = "human text"
OWN, FULL_TEXT, DIFFERENCE = "own text", "full-input text", "difference"
ADDED = metric_names.build(["oracle-ew", "accuracy"])  # outcomes that were not registered
DETECTED = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(POWER)  # standard errors found with probability POWER


# ---------------------------------------------------------------------------------------------------------- questions


def needed() -> int:
    """Return the number of questions needed to detect a difference of SMALLEST with probability POWER.

    The standard deviation is that of XQB's differences at k = 2.  The level is that of Holm's first step over KS,
    one-sided.
    """
    tables = read_values("text-at-pace")
    own, full = (tables["xqb-es", "wait-k", text, "2", "ew"] for text in ("2", FULL))
    spread = np.std(full[:, 0] / full[:, 1] - own[:, 0] / own[:, 1], ddof=1)
    quantiles = NormalDist().inv_cdf(1 - ALPHA / len(KS)) + NormalDist().inv_cdf(POWER)
    return int(np.ceil((quantiles * spread / SMALLEST) ** 2))


def chosen(pool: Sequence[Question], n: int) -> list[Question]:
    """Return the first n usable questions, in the order of the hashes of their ids.

    A question is usable if no training text repeats it and the guesser can name its answer.
    """
    [config] = read_parts(guesser=GUESSER)
    known = {key(page) for page in Parts().component(GUESSERS, config).pages}
    repeats = {repeat.question for repeat in nearest(pool, TRAINING).values() if repeat.excluded}
    usable = [question for question in pool if key(question.page) in known and question.id not in repeats]
    if len(usable) < n:
        raise DataError(f"{POOL}: {len(usable)} usable questions, {n} are needed")
    return sorted(usable, key=lambda question: hashlib.sha256(f"unseen {question.id}".encode()).digest())[:n]


def in_spanish(sentences: Sequence[str]) -> list[str]:
    """Translate English sentences into Spanish; raise DataError if a sentence is lost or Apertium is missing."""
    text = "\n".join(sentences) + "\n"
    for mode in MODES:
        try:
            done = subprocess.run(["apertium", "-u", mode], input=text, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise DataError(f"apertium -u {mode}: {error}; install {PACKAGES}") from error
        text = done.stdout
    lines = text.split("\n")[:-1]
    if len(lines) != len(sentences) or not all(line.strip() for line in lines):
        raise DataError(f"apertium: {len(lines)} lines for {len(sentences)} sentences, or an empty one")
    return lines


def write_questions(questions: Sequence[Question], path: Path) -> None:
    """Write the questions with their sentences in Spanish and the English text as the human translation."""
    english = [[" ".join(words) for words in split(question.text, "en")] for question in questions]
    spanish = iter(in_spanish([sentence for text in english for sentence in text]))
    lines = []
    for question, text in zip(questions, english, strict=True):
        made = {"language": "es", "source": [next(spanish) for _ in text], "reference": text}
        lines.append(json.dumps({**record_of(question), **made}, ensure_ascii=False))
    write_text(path, "\n".join(lines) + "\n")


# ----------------------------------------------------------------------------------------------------------- analysis


def configs(
    path: Path, texts: Sequence[K] = TEXTS, guesser: str = "rerank", buzzer: str = "rerank-translated"
) -> dict[str, RunConfig]:
    """Return the config of the run of each text, by name."""
    translators: dict[str, dict[str, Any]] = {str(k): {"name": "waitk", "model": "es-en", "k": k} for k in texts}
    translators[HUMAN] = {"name": "fixed", "text": "reference", "unit": "sentence"}
    return {
        name: run_from_mapping(
            {
                "name": f"{path.stem}-{name.replace(' ', '-')}{'' if guesser == 'rerank' else f'-{guesser}'}",
                "dataset": str(path),
                "translator": translator,
                "guesser": {"name": guesser},
                "buzzer": {"name": "mlp", "model": buzzer},
                "metrics": ["ew", "bleu"],
            }
        )
        for name, translator in translators.items()
    }


def played(of_texts: Mapping[str, RunConfig], runs: Path) -> dict[str, RunFolder]:
    """Return the run of each text, by name; missing runs are computed."""
    return dict(zip(of_texts, run_all(list(of_texts.values()), runs), strict=True))


def p_of(full: Floats, own: Floats) -> float:
    """Return the one-sided p-value of "the full-input text wins more", from statistics (n, 2) of EW."""

    def gap(sums: Floats) -> Floats:  # (b, texts, 2) -> (b, 1)
        scores = EW.score_many(sums.reshape(-1, 2)).reshape(-1, 2)
        return np.asarray(scores[:, :1] - scores[:, 1:])

    table = np.stack([full, own], axis=1)
    return float(p_value(gap(table.sum(axis=0)[None])[0], null_of(table, gap, PERMUTATIONS, 0))[0])


def at_paces(of_texts: Mapping[str, RunFolder], ks: Sequence[int] = KS) -> dict[tuple[str, ...], Floats]:
    """Return statistics (n, 2) by (text, k of the pace, metric), for the text at k, full input and the human text."""
    traces = {name: list(run.open().traces) for name, run in of_texts.items()}
    cells = product(ks, (EW, *ADDED))
    return {(name, str(k), m.name): at_pace(traces[name], k, m) for k, m in cells for name in (str(k), FULL, HUMAN)}


def rows(tables: Mapping[tuple[str, ...], Floats]) -> Iterator[Row]:
    """Yield the outcomes of each text, the differences, and the p-values of the test before and after Holm."""
    tests = []
    for k, metric in product(map(str, KS), (EW, *ADDED)):
        own, full, human = (tables[name, k, metric.name] for name in (k, FULL, HUMAN))
        for part, stats in ((OWN, own), (FULL_TEXT, full), (HUMAN, human)):
            yield row_of((k, part), metric.name, bootstrap(stats, metric), metric.unit, metric.signature())
        gap = compare(full, own, metric, PERMUTATIONS)
        yield row_of((k, DIFFERENCE), metric.name, gap, metric.unit, metric.signature())
        if metric is EW:
            tests.append(Row((k, DIFFERENCE), "p", p_of(full, own), n=len(own), unit="p"))
        error = np.std(full[:, 0] / full[:, 1] - own[:, 0] / own[:, 1], ddof=1) / np.sqrt(len(own))
        yield Row((k, DIFFERENCE), f"{metric.name}, two-sided p", gap.p, n=len(own), unit="p")
        yield Row((k, DIFFERENCE), f"{metric.name}, detectable", float(DETECTED * error), n=len(own), unit=metric.unit)
    yield from tests
    for row, corrected in zip(tests, holm([row.value for row in tests]), strict=True):
        yield Row(row.cell, "p after Holm", corrected, n=row.n, unit="p")


def prepared(runs: Path) -> Path:
    """Choose and translate the questions, write them to a file, and return its path."""
    path = runs / "unseen.jsonl"
    write_questions(chosen(load_questions(POOL), QUESTIONS), path)
    return path


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of the test, and BLEU of each text as a description."""
    of_texts = played(configs(prepared(runs)), runs)
    yield from rows(at_paces(of_texts))
    [bleu] = metric_names.build(["bleu"])
    for name, run in of_texts.items():
        yield from intervals((name, "own pace"), [(bleu, run.stats["bleu"])])


def values(_: Path, runs: Path) -> dict[tuple[str, ...], Floats]:
    """Return the statistics of each question, by (text, k of the pace, metric)."""
    return at_paces(played(configs(prepared(runs)), runs))


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
            models=("es-en", "bm25", "rerank", "buzzer-mlp-rerank-translated"), datasets=("human-buzz-questions",)
        ),
        blocks={"table": block, "other outcomes": other_outcomes},
        values=values,
        kept=f"needs {PACKAGES} and the recorded questions",
    ),
)
