"""Step-wise errors of wait-k translations: how many there are of each kind over k, and the worst of each.

    sqa reproduce errors

Claims, after Section 7 of Han, Carpuat and Boyd-Graber (2022), on hallucinations and omissions of wait-k models: the
smallest k invents more content words than full input, and leaves stretches of source out in more sentences.

Links between words are drawn with four seeds; what is counted uses their mean, and the columns `alignments.low` and
`alignments.high` say what the least and the most of them would count alone.

What is counted is found by `sqa diagnose` (kinds and the rule by which examples are chosen:
experiments/stepwise/examples.py); its precision is that of docs/errors.md, the same for every k.  The paper has
no such table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.grid import AblationConfig
from experiments.made import Difference, Made, gap
from experiments.paper.figure6 import Mean
from experiments.stepwise.examples import Found, subjects
from experiments.stepwise.rows import Kind, Subject
from experiments.stepwise.systems import errors_of_seeds
from sqa.core.significance import Interval, bootstrap, compare
from sqa.diagnose.alignment import SEEDS
from sqa.diagnose.findings import cells as finding_cells
from sqa.diagnose.step_errors import Finding

KINDS: tuple[Kind, ...] = ("hallucination", "omission", "under-translation", "drop")
Spread = list[tuple[float, float]]  # of each share of a system, 0 to 1: the least and the greatest over alignments
_COSTLY = {"hallucination": True, "omission": True, "under-translation": False, "drop": True}


@dataclass(frozen=True, slots=True)
class Share:
    """Something counted: stats (n, 2) = how often, out of how many."""

    name: str
    unit: str
    stats: np.ndarray


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce errors`: counts and examples as CSV, the differences on stdout."""
    found = subjects(config_path, runs, counted=True)
    spread = [alignments(subject) for subject in found.subjects]
    made = Made(found.folder)
    made.csv("errors_counts.csv", counts(found.subjects, found.ablation, spread))
    made.csv("errors_examples.csv", examples(found))
    made.differences(differences_of(found.subjects, found.ablation), found.left_out, "errors_differences.tsv")
    made.end()


# ------------------------------------------------------------------------------------------------------- counting


def shares(subject: Subject) -> list[Share]:
    """What is counted of one system, per question."""
    words = np.array([len(errors.unaligned) for errors in subject.errors], dtype=np.float64)
    invented = np.array([sum(errors.hallucinated) for errors in subject.errors], dtype=np.float64)
    sentences = np.array([len(question.sentences) for question in subject.run.questions], dtype=np.float64)
    found = [Share("hallucinated content words", "% of words", np.stack([invented, words], axis=1))]
    for kinds, name in ((("omission", "under-translation"), "sentences with lost source"),
                        (("under-translation",), "under-translated sentences")):  # fmt: skip
        lost = [len({f.sentence for f in e.findings if subject.kind(f) in kinds}) for e in subject.errors]
        found.append(Share(name, "% of sentences", np.stack([np.array(lost, dtype=np.float64), sentences], axis=1)))
    drops = [sum(f.kind == "drop" for f in errors.findings) for errors in subject.errors]
    return [
        *found,
        Share("drops of log MRR", "% of words", np.stack([np.array(drops, dtype=np.float64), words], axis=1)),
    ]


def intervals(subject: Subject, ablation: AblationConfig) -> list[tuple[Share, Interval]]:
    """Each share, 0 to 1, with its interval over questions."""
    return [(s, bootstrap(s.stats, Mean(s.name), ablation.resamples, ablation.seed)) for s in shares(subject)]


def alignments(subject: Subject) -> Spread:
    """Of each share the least and the greatest, 0 to 1, of those that each seed's alignment gives alone."""
    alone = [shares(replace(subject, errors=errors)) for errors in errors_of_seeds(subject.run, SEEDS)]
    values = [[Mean(share.name).score(share.stats.sum(axis=0)) for share in of_seed] for of_seed in alone]
    return [(min(of_share), max(of_share)) for of_share in zip(*values, strict=True)]


def counts(found: Sequence[Subject], ablation: AblationConfig, spread: Sequence[Spread]) -> list[list[str]]:
    """The numbers: one line per system and kind."""
    rows = [["dataset", "system", "guesser", "questions", "what", "count", "of", "percent", "low", "high",
             "alignments.low", "alignments.high", "unit"]]  # fmt: skip
    for subject, alone in zip(found, spread, strict=True):
        for (share, interval), ends in zip(intervals(subject, ablation), alone, strict=True):
            count, of = share.stats.sum(axis=0)
            numbers = [f"{100 * x:.6f}" for x in (interval.value, interval.low, interval.high, *ends)]
            where = [subject.dataset, subject.system, subject.guesser, str(interval.n), share.name]
            rows.append([*where, f"{count:.0f}", f"{of:.0f}", *numbers, share.unit])
    return rows


def differences_of(found: Sequence[Subject], ablation: AblationConfig) -> Iterator[Difference]:
    """The claims, for every data set that has the smallest k and full input."""
    for dataset in dict.fromkeys(subject.dataset for subject in found):
        mine = {subject.k: subject for subject in found if subject.dataset == dataset}
        finite = [k for k in mine if k != "full"]
        if "full" in mine and finite:
            small, full = mine[min(finite, key=int)], mine["full"]
            for a, b in zip(shares(small)[:2], shares(full)[:2], strict=True):
                compared = compare(a.stats, b.stats, Mean(a.name), ablation.resamples, ablation.seed)
                yield gap(
                    dataset, "wait-k", "-", f"{small.system} has more {a.name} than {full.system}", compared, ".2%"
                )


# -------------------------------------------------------------------------------------------------------- examples


def chosen(found: Found) -> Iterator[tuple[Subject, Kind, Finding]]:
    """The worst findings of each kind and data set of the config's k, one of a question at most."""
    for subject in found.subjects:
        if subject.k != found.config.k:
            continue
        for kind in KINDS:
            of_question: dict[str, Finding] = {}
            for finding in subject.examples(kind, _COSTLY[kind]):
                of_question.setdefault(finding.question, finding)
            yield from ((subject, kind, f) for f in list(of_question.values())[: found.config.examples])


def examples(found: Found) -> list[list[str]]:
    """The examples as CSV: what `sqa diagnose` prints, with the data set, the finer kind, the cost and the answer."""
    rows = [["dataset", "system", "guesser", "kind", "cost", "answer", "question", "found_as", "severity", "loss",
             "rank_before", "rank_after", "step", "read", "target", "source_at", "source"]]  # fmt: skip
    for subject, kind, finding in chosen(found):
        page = subject.trace(finding).question.page
        where = [subject.dataset, subject.system, subject.guesser, kind, f"{subject.cost(finding):.6f}", page]
        rows.append([*where, *finding_cells(finding)])
    return rows
