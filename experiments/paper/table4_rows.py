"""Numbers of Table 4: scores of systems and readers, BLEU of each system, differences between systems."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from experiments.lab.ledger import Row, row_of
from experiments.paper.table4_config import DIFFERENCES, MEAN, METRICS, MINUS, NOTHING, RANK, Group, Table4Config
from experiments.paper.table4_measured import Answered
from sqa.core.differences import compare_many
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission
from sqa.metrics.quality.bleu import Bleu
from sqa.metrics.short_answers import LanguageMean, by_language
from sqa.pipeline.paired import intervals


def rows_of(results: Sequence[Answered], config: Table4Config) -> Iterator[Row]:
    """Yield scores (0 to 1) of systems and readers, BLEU of each system, and differences between systems.

    Each system is also compared with the reader that does not read the questions ("always yes").  A difference needs
    answers to the same questions.
    """
    by_cell = groups(results, config)
    for cell, parts in by_cell.items():
        given = [(LanguageMean(name), stats) for name in METRICS if (stats := _stats(parts, name)) is not None]
        yield from intervals(cell, given, config.resamples, config.seed, "0-1")
    yield from _bleu(results, config)
    kinds = {NOTHING: NOTHING} | {system.label: system.question for system in config.systems}
    for a, b in combinations(sorted(by_cell, key=lambda cell: RANK[kinds[cell[2]]]), 2):
        same = a[:2] == b[:2] and (a[3] == b[3] or b[2] == NOTHING != a[2])
        if same and [p.questions for p in by_cell[a]] == [p.questions for p in by_cell[b]]:
            tables = {metric: (_stats(by_cell[a], metric), _stats(by_cell[b], metric)) for metric in DIFFERENCES}
            pairs = {LanguageMean(m): (x, y) for m, (x, y) in tables.items() if x is not None and y is not None}
            compared = compare_many(list(pairs.values()), list(pairs), config.resamples, config.seed)
            cell = (*a[:2], f"{a[2]}{MINUS}{b[3] if b[2] == NOTHING else b[2]}", a[3])
            yield from (row_of(cell, rule.name, gap, "0-1") for rule, gap in zip(pairs, compared, strict=True))


def groups(results: Sequence[Answered], config: Table4Config) -> dict[Group, list[Answered]]:
    """Return the answers of each set, language, system and reader; MEAN joins the languages if all are present."""
    by_cell: dict[Group, list[Answered]] = {}
    for result in results:
        for language in (result.language, MEAN):
            by_cell.setdefault((result.set, language, result.system, result.reader), []).append(result)
    every = len(config.languages)
    return {cell: parts for cell, parts in by_cell.items() if cell[1] != MEAN or len(parts) == every > 1}


def _stats(parts: Sequence[Answered], metric: str) -> np.ndarray | None:
    """Return the statistics of `LanguageMean` over all parts, of shape (n, 2 L), or None if a language has no value."""
    values = np.concatenate([part.values(metric) for part in parts])
    stats = by_language(values.tolist(), [part.language for part in parts for _ in part.questions])
    return stats if (stats.sum(axis=0)[1::2] > 0).all() else None


def _bleu(results: Sequence[Answered], config: Table4Config) -> Iterator[Row]:
    """Yield the BLEU (0 to 100) of each system's translations of questions that have a human translation."""
    human = {system.label for system in config.systems if system.question == "human"}
    by_size = sorted(results, key=lambda result: len(result.questions))
    largest = {(result.set, result.language, result.system): result for result in by_size}
    rule = Bleu()
    for cell, result in largest.items():
        untranslated = any(question.translation is None for question in result.questions)
        if result.texts is None or result.system in human or untranslated:
            continue
        traces = []
        for question, text in zip(result.questions, result.texts, strict=True):
            source = question.as_question()
            emissions = [Emission(0, word, len(source.words), ended=True) for word in text.split()]
            traces.append(QuestionTrace(source, emissions))
        stats = np.array([rule.stats(trace) for trace in traces])
        yield from intervals((*cell, "-"), [(rule, stats)], config.resamples, config.seed, "0-100")


def claim(row: Row) -> Row:
    """Return the row of a difference between two systems, labelled as a claim."""
    between, reader = row["system"], row["reader"]
    better, _, worse = between.partition(MINUS)
    words = f"answers to {better} are better than to {worse} (F1)"
    return replace(row, cell=(f"{row['set']} {row['language']}", better, reader, words, between))
