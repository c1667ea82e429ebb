"""Facts in any test set: accuracy of the extraction, differences between systems, and effect of text changes.

reading      precision and recall of the rules, on hand-marked sentences
systems      shares of arrived and of invented facts, and their delay, for systems on news test sets
differences  paired differences between these systems
contrast     effect of changing one place in a translation, as in AskQE (Ki, Duh and Carpuat 2025); differences are
             paired, over the sentences to which a change applies
log          facts of a log published with OmniSTEval
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Ledger, Row, row_of
from experiments.lab.tables import columns, number, pivot
from experiments.studies.fact_changes import CONTRAST
from experiments.translation_sets import SetConfig, load_set
from sqa.core.differences import compare
from sqa.core.paths import ROOT
from sqa.core.significance import Mean
from sqa.core.types import Floats, Question
from sqa.data.datasets import load_questions
from sqa.data.download import path_of
from sqa.data.perturb import perturb
from sqa.files.store import Store
from sqa.metrics import build
from sqa.metrics.fact_metrics import Facts, fact_stats
from sqa.metrics.facts_log import FactOptions, judged_lines
from sqa.metrics.quality.facts import facts_in, judge
from sqa.pipeline.config import of_parts
from sqa.pipeline.engine import run
from sqa.pipeline.paired import intervals, scored
from sqa.results import markdown

GOLD = ROOT / "tests" / "golden" / "vectors"  # facts-*.tsv: sentence ids with hand-marked facts
METRICS = ("facts", "facts@invented", "facts-lag", "facts@timed", "names", "bleu", "chrf")
LIMIT = 500  # sentences per test set
HUMAN, APERTIUM = "human translation", {"name": "command", "command": ["apertium", "-u", "spa-eng"]}
FIRST = {HUMAN: {"name": "fixed", "text": "reference", "reveal": "diagonal"}}
SYSTEMS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "es-en newstest2013": {
        **FIRST,
        **{f"Apertium, {k}": {**APERTIUM, "k": k} for k in ("full", 6)},
        **{f"Transformer, {k}": {"name": "waitk", "model": "es-en", "k": k} for k in ("full", 6)},
    },
    "pl-en newstest2020": {
        **FIRST,
        **{f"Transformer, {k}": {"name": "waitk", "model": "pl-en", "k": k} for k in ("full", 6)},
    },
}


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of all parts."""
    for gold in sorted(GOLD.glob("facts-*.tsv")):
        yield from reading(gold)
    for test, systems in SYSTEMS.items():
        pair, name = test.split()
        questions = load_set(SetConfig(name, pair), LIMIT)[1]
        results = {}
        for label, translator in systems.items():
            wanted = of_parts(translator=translator, metrics=METRICS)
            results[label] = run(wanted, Store(runs), questions=questions, progress=False)
            yield from intervals(("systems", name, label), scored(results[label]))
        for (better, first), (worse, second) in pairwise((k, v) for k, v in results.items() if not k.endswith("6")):
            for metric in build(METRICS[:2]):
                difference = compare(first.stats[metric.name], second.stats[metric.name], metric)
                yield row_of(("differences", name, f"{better} minus {worse}"), metric.name, difference, "0-1")
        for label in (HUMAN, "Apertium, full"):
            if label in results and name == "newstest2013":
                outputs = [" ".join(trace.hypotheses).split() for trace in results[label].traces]
                yield from contrast(label, questions, outputs)
    yield from of_others()


def of_others() -> Iterator[Row]:
    """Yield the facts of a log published with OmniSTEval (English speech, German text; only numbers are facts)."""
    lines = judged_lines(str(path_of("mustc-instances")), FactOptions("en-de"))
    cell = ("log", "MuST-C en-de", "OmniSTEval's log")
    yield from intervals(cell, [(Facts(), np.array([line.stats("arrived") for line in lines]))], unit="0-1")
    yield Row(cell, "counted", sum(len(line.judged.expected) for line in lines), unit="count")


def reading(gold: Path) -> Iterator[Row]:
    """Yield precision and recall on hand-marked sentences.

    Each line of the file has an id and the facts as indices of words; indices in brackets are optional.
    """
    texts = marked_sentences(gold)
    right, n_read, n_matched, n_marked = [], [], [], []
    for line in gold.read_text(encoding="utf-8").splitlines():
        id, _, marks = line.partition("\t")
        facts = [part.split() for part in marks.split(";") if part.strip()]
        allowed = {int(word.strip("()")) for fact in facts for word in fact}
        needed = [{int(w) for w in fact if w.isdigit()} or {int(w.strip("()")) for w in fact} for fact in facts]
        spans = [set(range(fact.first, fact.last + 1)) for fact in facts_in(texts[id].split())]
        right.append(sum(span <= allowed for span in spans))
        n_read.append(len(spans))
        n_matched.append(sum(need <= set().union(*spans) for need in needed))
        n_marked.append(len(needed))
    for name, counts in (("precision", (right, n_read)), ("recall", (n_matched, n_marked))):
        cell = ("reading", gold.stem.removeprefix("facts-"), "rules")
        yield from intervals(cell, [(Mean(name), np.array(counts, dtype=np.float64).T)], unit="0-1")
        yield Row(cell, f"{name} of", float(sum(counts[1])), unit="count")


def marked_sentences(gold: Path) -> dict[str, str]:
    """Return the text of the hand-marked sentences of a file, by id."""
    name = gold.stem.removeprefix("facts-")
    if name not in ("xqb", "mini"):
        return {q.id.rpartition("-")[2]: q.reference_text for q in load_set(SetConfig(name, "es-en"), None)[1]}
    sets = (load_questions(f"{name}-{language}") for language in ("es", "pl"))
    return {f"{q.id}#{at}": text for questions in sets for q in questions for at, text in enumerate(q.reference)}


def contrast(label: str, questions: Sequence[Question], outputs: Sequence[Sequence[str]]) -> Iterator[Row]:
    """Yield, for each change, the score of the changed minus that of the unchanged translations, and its p-value."""
    for family, kinds in CONTRAST.items():
        for kind in kinds:
            before, after = [], []
            for question, words in zip(questions, outputs, strict=True):
                if not words:
                    continue
                perturbed = perturb(replace(question, language="en", sentences=(tuple(words),)), kind, 0)
                if perturbed is not None:
                    before.append(_stats(question, words))
                    after.append(_stats(question, perturbed.words))
            for index, metric in enumerate(build(METRICS[:2])):
                changed, original = (np.array([row[index] for row in rows]) for rows in (after, before))
                difference = compare(changed, original, metric)
                cell = ("contrast", label, f"{family}: {kind.name}")
                yield row_of(cell, metric.name, difference, "0-1")
                yield Row(cell, f"{metric.name} p", difference.p, n=difference.n, unit="p")


def _stats(question: Question, words: Sequence[str]) -> list[Floats]:
    judged = judge(question.words, tuple(words), tuple(question.reference_text.split()), question.language)
    return [fact_stats(side, judged, (), ()) for side in ("arrived", "invented")]


def contrast_block(ledger: Ledger) -> list[str]:
    """Return a table of changes and their effect on the facts of each translation."""
    tests = dict.fromkeys(row.cell[1] for row in ledger.where(part="contrast"))
    lines = []
    for change in dict.fromkeys(row.cell[2] for row in ledger.where(part="contrast")):
        cells = [change]
        for test in tests:
            row, p = (ledger.one(name, part="contrast", test=test, what=change) for name in ("facts", "facts p"))
            same = row is not None and row.value == row.low == row.high == 0
            cells += ["0" if same else number(row, sign=True), number(p)]
        lines.append(cells)
    return markdown(["change", *(head for test in tests for head in (test, "p"))], lines)


ITEMS = (
    Item(
        name="facts",
        shows="names, numbers and dates that arrive: accuracy of the rules, systems on news, effect of changes",
        config="",
        columns=("part", "test", "what"),
        measure=measure,
        inputs=inputs_of(models=("es-en", "pl-en", "align-es-en", "align-pl-en"), datasets=("xqb-es", "xqb-pl")),
        blocks={
            "reading": pivot(
                ("test",),
                columns("precision", "precision of: of", "recall", "recall of: of"),
                ("sentences of",),
                part="reading",
            ),
            "systems": pivot(
                ("test", "what"),
                columns(*METRICS[:3]) + columns("bleu", interval=False),
                ("test", "system"),
                part="systems",
            ),
            "contrast": contrast_block,
            "log": pivot(("test",), columns("facts", "counted: numbers counted"), ("log",), part="log"),
        },
        kept="news tests need Apertium and data that are not bundled",
    ),
)
