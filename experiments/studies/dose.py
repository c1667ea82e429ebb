"""Dose-matched damage: the same number of words of the human translation, damaged in different ways.

In each question, as many words are removed as it has names, or all words of a kind that has fewer: names, numbers,
negations, other content words or function words, drawn at random.  For *order*, as many words (at least two) change
places at random within the question.  For *roles*, two names around a word in -ed do, wherever there are such.
A name is a capitalised word that no reference of the set writes in lower case.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Ledger, Row, row_of
from experiments.results_book.tables import Column, pivot
from experiments.studies.question_validity import ROLES
from sqa import metrics as metric_names
from sqa.api.experiment import Entry, Experiment
from sqa.core import Question, compare, language_of, word_value
from sqa.core.differences import PERMUTATIONS
from sqa.data.datasets import load_questions
from sqa.data.perturb import rng_for
from sqa.files import write_text
from sqa.metrics.quality.names import negations
from sqa.report import plots

SETS, GUESSERS = ("xqb-es", "xqb-pl"), ("rerank", "bm25", "gru")
INTACT, NAMES, NUMBERS, NEGATION = "intact", "names", "numbers", "negations"
CONTENT, FUNCTION, ROLE, ORDER = "other content words", "function words", "roles", "order"
KINDS = (NAMES, NUMBERS, CONTENT, FUNCTION, NEGATION, ROLE, ORDER)
OUTCOMES = metric_names.build(["ew", "oracle-ew", "accuracy", "mrr"])
MARKS = " .,;:!?\"'()[]“”‘’"


def kinds_of(words: Sequence[str], lower: frozenset[str]) -> Mapping[str, list[int]]:
    """Return the positions of the words of each kind; none for the intact text."""
    positions: dict[str, list[int]] = {kind: [] for kind in (INTACT, *KINDS)}
    for i, word in enumerate(words):
        core = word.strip(MARKS).removesuffix("'s").removesuffix("’s")
        named = len(core) > 1 and core[0].isupper() and core.lower() not in lower
        number = any(map(str.isdigit, core)) or (word_value(core.lower(), "en") or 0) > 1
        plain = FUNCTION if core.lower() in language_of("en").function_words else CONTENT
        positions[NUMBERS if number else NEGATION if negations(word) else NAMES if named else plain].append(i)
    return positions


def damaged(question: Question, kind: str, lower: frozenset[str]) -> tuple[str, int]:
    """Return the damaged human translation of a question, and the number of words that are removed or moved."""
    words, rng = question.reference_text.split(), rng_for(0, question.id, kind)
    positions = kinds_of(words, lower)
    if kind == ROLE:
        swapped = ROLES.sub(r"\3\2\1", " ".join(words)).split()
        return " ".join(swapped), sum(a != b for a, b in zip(words, swapped, strict=True))
    if kind == ORDER:
        chosen = sorted(rng.sample(range(len(words)), min(max(2, len(positions[NAMES])), len(words))))
        moved = dict(zip(chosen, deranged(chosen, rng), strict=True))
        return " ".join(words[moved.get(i, i)] for i in range(len(words))), len(chosen)
    chosen = rng.sample(positions[kind], min(len(positions[NAMES]), len(positions[kind])))
    return " ".join(word for i, word in enumerate(words) if i not in set(chosen)), len(chosen)


def deranged(positions: Sequence[int], rng: random.Random) -> list[int]:
    """Return the positions in a random order without a fixed point; there are at least two."""
    order = rng.sample(positions, len(positions))
    return order if all(a != b for a, b in zip(order, positions, strict=True)) else deranged(positions, rng)


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the number of damaged words, and the change of each outcome from the intact text with its p-value."""
    for name in SETS:
        questions = load_questions(name)
        lower = frozenset(w.strip(MARKS) for q in questions for w in q.reference_text.split() if w[0].islower())
        entries = []
        for kind in (INTACT, *KINDS):
            made = [damaged(question, kind, lower) for question in questions]
            yield Row((name, "-", kind), "words", sum(n for _, n in made), n=len(made), unit="words")
            path = runs / "dose" / f"{name}-{kind.replace(' ', '-')}.txt"
            write_text(path, "".join(f"{text}\n" for text, _ in made))
            entries.append(Entry(kind, {"name": "fixed", "text": str(path), "unit": "question"}))
        done = Experiment(entries, GUESSERS, dataset=name, metrics=[m.name for m in OUTCOMES], runs=runs).run()
        stats = {(result.guesser, result.translator): result.stats for result in done}
        for (guesser, kind), metric in product(stats, OUTCOMES):
            table, intact = (stats[guesser, text][metric.name] for text in (kind, INTACT))
            if kind != INTACT:
                gap = compare(table, intact, metric, PERMUTATIONS)
                yield row_of((name, guesser, kind), metric.name, gap, metric.unit, metric.signature())
                yield Row((name, guesser, kind), f"{metric.name} p", gap.p, n=gap.n, unit="p")


TABLE = [Column("words", "words", 0, cell={"guesser": "-"})]
TABLE += [Column(m, f"{m}, {g}", sign=True, cell={"guesser": g}) for g in GUESSERS for m in ("ew", "accuracy")]


def picture(ledger: Ledger) -> plots.Figure:
    """Draw the change of EW by each kind of damage, a panel for each data set and a colour for each guesser."""
    panels: dict[str, list[plots.Dot]] = {name: [] for name in SETS}
    for name, (y, kind), (i, guesser) in product(SETS, enumerate(KINDS), enumerate(GUESSERS)):
        row = ledger.one("ew", dataset=name, guesser=guesser, damage=kind)
        if row is not None:  # without an interval if too few questions differ
            shown = row if row.low is not None else replace(row, low=row.value, high=row.value)
            panels[name].append(plots.Dot(y + 0.2 * (i - 1), shown, i, guesser))
    return plots.forest(
        panels, KINDS, plots.PAGE, "change of expected wins, equal numbers of words damaged (or all of a rarer kind)"
    )


ABOUT = "equal numbers of names and other words removed, or of words moved"
COLUMNS, BLOCKS = ("dataset", "guesser", "damage"), {name: pivot(("damage",), TABLE, dataset=name) for name in SETS}
INPUTS, FIGURES = inputs_of(GUESSERS, SETS), {"docs/dose.png": picture}
ITEMS = (Item("dose", ABOUT, "", COLUMNS, measure, INPUTS, BLOCKS, FIGURES),)
