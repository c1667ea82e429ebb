"""Step-wise errors of wait-k translations: how many there are of each kind over k, and the worst of each.

    sqa reproduce errors

Claims, after Section 7 of Han, Carpuat and Boyd-Graber (2022), on hallucinations and omissions of wait-k models: the
smallest k invents more content words than full input, and leaves stretches of source out in more sentences.

Links between words are drawn with four seeds; what is counted uses their mean, and the metrics "least alone" and "most
alone" say what the least and the most of them would count.

What is counted is found by `sqa diagnose` (kinds and the rule by which examples are chosen:
experiments/stepwise/examples.py); its precision is that of docs/errors.md, the same for every k.  The paper has
no such table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.lab.ledger import Row, row_of
from experiments.made import Made
from experiments.paper.figure6 import Mean
from experiments.stepwise.examples import StepwiseConfig, subjects
from experiments.stepwise.rows import Kind, Subject
from experiments.stepwise.systems import Found, errors_of_seeds
from sqa.core.significance import bootstrap, compare
from sqa.diagnose.alignment import SEEDS
from sqa.diagnose.findings import cells as finding_cells
from sqa.diagnose.step_errors import Finding

KINDS: tuple[Kind, ...] = ("hallucination", "omission", "under-translation", "drop")
COLUMNS = ("dataset", "k", "kind")
ALONE = ("least alone", "most alone")  # of the single alignments
_COSTLY = {"hallucination": True, "omission": True, "under-translation": False, "drop": True}


class Share(NamedTuple):
    """Something counted: stats (n, 2) = how often, out of how many."""

    name: str
    stats: np.ndarray


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce errors`: counts and examples as CSV, the former on stdout."""
    found = subjects(config_path, runs, counted=True)
    made = Made(found.folder)
    made.rows("errors_counts.csv", COLUMNS, counts(found), show=True)
    made.csv("errors_examples.csv", examples(found))
    made.end()


# ------------------------------------------------------------------------------------------------------- counting


def shares(subject: Subject) -> list[Share]:
    """What is counted of one system, per question."""
    words = [len(errors.unaligned) for errors in subject.errors]
    sentences = [len(question.sentences) for question in subject.run.questions]
    invented = [sum(errors.hallucinated) for errors in subject.errors]
    drops = [sum(f.kind == "drop" for f in errors.findings) for errors in subject.errors]

    def lost(*kinds: Kind) -> list[int]:
        return [len({f.sentence for f in e.findings if subject.kind(f) in kinds}) for e in subject.errors]

    counted = (
        ("hallucinated content words", invented, words),
        ("sentences with lost source", lost("omission", "under-translation"), sentences),
        ("under-translated sentences", lost("under-translation"), sentences),
        ("drops of log MRR", drops, words),
    )
    return [Share(name, np.column_stack([often, of]).astype(np.float64)) for name, often, of in counted]


def counts(found: Found[StepwiseConfig]) -> Iterator[Row]:
    """Each share at each k, 0 to 1, what the least and the most of the single alignments would count, and the claims:
    the smallest k minus full input."""
    config = found.ablation
    for subject in found.subjects:
        seeds = [shares(replace(subject, errors=errors)) for errors in errors_of_seeds(subject.run, SEEDS)]
        for share, *alone in zip(shares(subject), *seeds, strict=True):
            cell = (subject.dataset, f"k = {subject.k}", share.name)
            values = [Mean(share.name).score(one.stats.sum(axis=0)) for one in alone]
            interval = bootstrap(share.stats, Mean(share.name), config.resamples, config.seed)
            yield row_of(cell, "share", interval, "share")
            for name, value in zip(ALONE, (min(values), max(values)), strict=True):
                yield Row(cell, name, value, n=interval.n, unit="share")
    for dataset in found.datasets:
        mine = [subject for subject in found.subjects if subject.dataset == dataset]
        for a, b in zip(shares(mine[0]), shares(mine[-1]), strict=True):
            gap = compare(a.stats, b.stats, Mean(a.name), config.resamples, config.seed)
            yield row_of((dataset, f"k = {mine[0].k} minus {mine[-1].k}", a.name), "share", gap, "share")


# -------------------------------------------------------------------------------------------------------- examples


def chosen(found: Found[StepwiseConfig]) -> Iterator[tuple[Subject, Kind, Finding]]:
    """The worst findings of each kind and data set of the config's k, one of a question at most."""
    for subject in found.subjects:
        if subject.k != found.config.k:
            continue
        for kind in KINDS:
            of_question: dict[str, Finding] = {}
            for finding in subject.examples(kind, _COSTLY[kind]):
                of_question.setdefault(finding.question, finding)
            yield from ((subject, kind, f) for f in list(of_question.values())[: found.config.examples])


def examples(found: Found[StepwiseConfig]) -> list[list[str]]:
    """The examples as CSV: what `sqa diagnose` prints, with the data set, the finer kind, the cost and the answer."""
    rows = [["dataset", "system", "guesser", "kind", "cost", "answer", "question", "found_as", "severity", "loss",
             "rank_before", "rank_after", "step", "read", "target", "source_at", "source"]]  # fmt: skip
    for subject, kind, finding in chosen(found):
        page = subject.trace(finding).question.page
        where = [subject.dataset, subject.system, subject.guesser, kind, f"{subject.cost(finding):.6f}", page]
        rows.append([*where, *finding_cells(finding)])
    return rows
