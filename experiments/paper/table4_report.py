"""The numbers of Table 4: scores with intervals, and paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from experiments.lab.ledger import Row, row_of
from experiments.made import Difference
from experiments.paper.table4_rows import NOTHING, Answered, Table4Config
from sqa.core.significance import bootstrap, bootstrap_many, compare_many
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission
from sqa.metrics.quality.bleu import Bleu
from sqa.metrics.short_answers import LanguageMean, by_language

MEAN = "mean"  # of the languages
COLUMNS = ("set", "language", "system", "reader")
METRICS = ("em", "f1", "em.spans", "f1.spans", "em.yes_no", "found")
DIFFERENCES = ("em", "f1", "f1.spans")
MINUS = " minus "  # between the two systems of a difference
RANK = {"human": 0, "trained": 1, "translated": 1, "source": 2, NOTHING: 3}  # of two the lower comes first

Group = tuple[str, str, str, str]  # set, language or MEAN, system, reader


def rows_of(results: Sequence[Answered], config: Table4Config) -> Iterator[Row]:
    """Each system and reader, 0 to 1; the BLEU of each system's questions; the better of two systems minus the other.

    The last also against the reader that reads nothing, where both were asked the same questions.
    """
    found = groups(results, config)
    for cell, parts in found.items():
        scored = [(metric, stats) for metric in METRICS if (stats := _stats(parts, metric)) is not None]
        rules = [LanguageMean(metric) for metric, _ in scored]
        intervals = bootstrap_many([stats for _, stats in scored], rules, config.resamples, config.seed)
        yield from (row_of(cell, rule.name, i, "0-1") for rule, i in zip(rules, intervals, strict=True))
    yield from _bleu(results, config)
    kinds = {NOTHING: NOTHING} | {system.label: system.question for system in config.systems}
    for a, b in combinations(sorted(found, key=lambda cell: RANK[kinds[cell[2]]]), 2):
        same = a[:2] == b[:2] and (a[3] == b[3] or b[2] == NOTHING != a[2])
        if same and [p.questions for p in found[a]] == [p.questions for p in found[b]]:
            pairs = [(metric, _stats(found[a], metric), _stats(found[b], metric)) for metric in DIFFERENCES]
            both = {metric: (x, y) for metric, x, y in pairs if x is not None and y is not None}
            rules = [LanguageMean(metric) for metric in both]
            compared = compare_many(list(both.values()), rules, config.resamples, config.seed)
            cell = (*a[:2], f"{a[2]}{MINUS}{b[3] if b[2] == NOTHING else b[2]}", a[3])
            yield from (row_of(cell, rule.name, gap, "0-1") for rule, gap in zip(rules, compared, strict=True))


def groups(results: Sequence[Answered], config: Table4Config) -> dict[Group, list[Answered]]:
    """What is averaged: each system and reader in each language, then in all of them where it has all."""
    found: dict[Group, list[Answered]] = {}
    for one in results:
        for language in (one.language, MEAN):
            found.setdefault((one.set, language, one.system, one.reader), []).append(one)
    every = len(config.languages)
    return {cell: parts for cell, parts in found.items() if cell[1] != MEAN or len(parts) == every > 1}


def _stats(parts: Sequence[Answered], metric: str) -> np.ndarray | None:
    """(n, 2 L) of `LanguageMean`, the questions of all parts one after the other; None: a language has no such."""
    values = np.concatenate([part.values(metric) for part in parts])
    stats = by_language(values.tolist(), [part.language for part in parts for _ in part.questions])
    return stats if (stats.sum(axis=0)[1::2] > 0).all() else None


def _bleu(results: Sequence[Answered], config: Table4Config) -> Iterator[Row]:
    """BLEU of all questions in English, 0 to 100, where a person has translated them and the system is no person."""
    human = {system.label for system in config.systems if system.question == "human"}
    most = {(one.set, one.language, one.system): one for one in sorted(results, key=lambda one: len(one.questions))}
    rule = Bleu()
    for cell, one in most.items():
        if one.texts is None or one.system in human or any(question.translation is None for question in one.questions):
            continue
        traces = []
        for question, text in zip(one.questions, one.texts, strict=True):
            source = question.as_question()
            emissions = [Emission(0, word, len(source.words), ended=True) for word in text.split()]
            traces.append(QuestionTrace(source, emissions))
        stats = np.array([rule.stats(trace) for trace in traces])
        yield row_of((*cell, "-"), "bleu", bootstrap(stats, rule, config.resamples, config.seed), "0-100")


def claim(row: Row) -> Difference:
    """A difference of two systems as a claim."""
    name, language, between, reader = row.cell
    better, _, worse = between.partition(MINUS)
    words = f"answers to {better} are better than to {worse} (F1)"
    return Difference(f"{name} {language}", better, reader, words, between, row.value, row.low, row.high, row.n)
