"""Step-wise errors of wait-k translations: the worst of each kind, their cost, and their frequency over k.

    sqa reproduce errors

Examples are chosen by rule, never by hand, from the findings of `sqa diagnose`.  The example of a kind is the error
with the highest cost in log MRR, which must be at least ln 2 nats (a fall from rank 1 to 2).  The example of
under-translation is the first in the ranking of the findings.  Kinds:

    hallucination      content words without a corresponding source word
    omission           a stretch of untranslated source words in a sentence whose translation continues after it
    under-translation  an untranslated stretch after which nothing is written: reading continues, writing has stopped

The cost of a hallucination is the fall of log MRR while it was written.  The cost of an omission is how much more log
MRR the human translation gained over the sentence.

Claims, after Section 7 of Han, Carpuat and Boyd-Graber (2022):

    - Invented words mislead the player: log MRR changes for the worse at these words.
    - Omitted source words cannot help the player: sentences with omissions lose more log MRR compared with the human
      translation than other sentences.
    - The smallest k invents more content words than full input, and omits source words in more sentences.

The paper has no such table.

Word links are drawn with four seeds.  Counts use the mean of the seeds; the metrics "least alone" and "most alone"
give the smallest and the largest count of a single seed.  docs/errors.md gives the precision of the counted errors,
which is the same for every k.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.grid import AblationConfig
from experiments.outputs import Outputs
from experiments.results_book import grid_rows
from experiments.results_book.item import Item
from experiments.results_book.ledger import Row, row_of
from experiments.results_book.tables import Column, pivot
from experiments.stepwise.systems import RULES, Kind, Selection, Subject, errors_of_seeds, systems
from sqa.core.differences import compare
from sqa.core.significance import Mean, bootstrap
from sqa.diagnose.alignment import SEEDS
from sqa.diagnose.findings import table as findings_table
from sqa.diagnose.step_errors import TINY, Finding
from sqa.pipeline.config import load

FEW = 10  # minimum number of sentences or words of a compared mean
COSTS, COUNTS = ("kind", "dataset"), ("dataset", "k", "kind")  # columns
ALONE = ("least alone", "most alone")  # metrics of a single seed
# A sentence counts if nothing was written after the lost words were read.  With full input, every word is written after
# all were read, so the share is 0 by construction and is not compared over k.
SILENT = "under-translated sentences"


@dataclass(frozen=True, slots=True)
class StepwiseConfig:
    """Keys of the items on step-wise errors; configs/stepwise.yaml explains them."""

    name: str
    ablation: Path
    guesser: str
    k: int | str
    counted: tuple[int | str, ...]
    examples: int = 3


def subjects(config_path: Path, runs: Path) -> Selection:
    """Return the systems of a config: the systems whose errors are counted, and the system shown in examples."""
    config = load(config_path, StepwiseConfig)
    return systems(config, config_path, runs, [("wait-k", k) for k in dict.fromkeys((*config.counted, config.k))])


# -------------------------------------------------------------------------------------------------- cost of errors


def sentence_gap(subject: Subject, kind: Kind) -> np.ndarray:
    """Return the sum and the count of the losses in sentences with `kind`, then in all other sentences: shape (n, 4).

    The loss of a sentence is how much more log MRR the human translation gains over it.
    """
    rows = []
    for index, errors in enumerate(subject.errors):
        bad = {f.sentence for f in errors.findings if subject.kind(f) == kind}
        deficits = subject.deficits(index)
        rows.append(apart(deficits, [sentence in bad for sentence in range(len(deficits))]))
    return np.array(rows, dtype=np.float64)


def word_gap(subject: Subject) -> np.ndarray:
    """Return the sum and the count of the changes of log MRR at hallucinated words, then at others: shape (n, 4)."""
    pairs = zip(subject.errors, subject.lines, strict=True)
    rows = [apart(np.diff(line.log_mrr, prepend=RULES.floor), errors.hallucinated) for errors, line in pairs]
    return np.array(rows, dtype=np.float64)


def apart(values: Sequence[float] | np.ndarray, marked: Sequence[bool]) -> list[float]:
    """Return the sum and the number of the marked values, then of the unmarked values."""
    parts = (np.asarray(values)[np.array(marked, dtype=bool) == side] for side in (True, False))
    return [number for part in parts for number in (part.sum(), len(part))]


class Cost(NamedTuple):
    """Cost of errors of one kind over all questions."""

    kind: Kind
    costly: bool  # whether an example must cost at least RULES.drop
    label: str  # name of the words or sentences that contain this kind of error
    gap: Callable[[Subject], np.ndarray]

    def rows(self, subject: Subject, ablation: AblationConfig) -> Iterator[Row]:
        """Yield the number of places with this kind of error, and the difference in log MRR from all other places.

        The difference is omitted if there are fewer than FEW places of either kind.
        """
        stats, cell = self.gap(subject), (self.label, subject.dataset)
        counts = stats.sum(axis=0)[1::2]
        yield Row(cell, "places", float(counts[0]), n=len(stats), unit="count")
        if counts.min() >= FEW:
            gap = compare(stats[:, :2], stats[:, 2:], Mean(self.label), ablation.resamples, ablation.seed)
            yield row_of(cell, "log MRR", gap, "nats")


KINDS = (
    Cost("hallucination", True, "hallucinated content words", word_gap),
    Cost("omission", True, "sentences with an omission", partial(sentence_gap, kind="omission")),
    Cost("under-translation", False, SILENT, partial(sentence_gap, kind="under-translation")),
)


def costs(selection: Selection) -> Iterator[Row]:
    """Yield the costs of each kind on each data set, at the config's k."""
    for subject in selection.subjects:
        for kind in KINDS if subject.k == selection.config.k else ():
            yield from kind.rows(subject, selection.ablation)


# ---------------------------------------------------------------------------------------------- frequency of errors


def shares(subject: Subject) -> dict[str, np.ndarray]:
    """Return a dict that maps each kind to an array (n, 2): the errors and the places in each question of a system."""
    words = [len(errors.unaligned) for errors in subject.errors]
    sentences = [len(question.sentences) for question in subject.run.questions]

    def lost(*kinds: Kind) -> list[int]:
        return [len({f.sentence for f in e.findings if subject.kind(f) in kinds}) for e in subject.errors]

    drops = [sum(f.kind == "drop" for f in errors.findings) for errors in subject.errors]
    counted = {
        "hallucinated content words": ([sum(errors.hallucinated) for errors in subject.errors], words),
        "sentences with lost source": (lost("omission", "under-translation"), sentences),
        SILENT: (lost("under-translation"), sentences),
        "drops of log MRR": (drops, words),
    }
    return {name: np.column_stack(counts).astype(np.float64) for name, counts in counted.items()}


def counts(selection: Selection) -> Iterator[Row]:
    """Yield each share (0 to 1) and its range over seeds at each k, and the difference of smallest k and full input."""
    config, counted = selection.ablation, [s for s in selection.subjects if s.k in selection.config.counted]
    for subject in counted:
        seeds = [shares(replace(subject, errors=errors)) for errors in errors_of_seeds(subject.run, SEEDS)]
        for name, stats in shares(subject).items():
            cell = (subject.dataset, f"k = {subject.k}", name)
            values = [Mean(name).score(alone[name].sum(axis=0)) for alone in seeds]
            interval = bootstrap(stats, Mean(name), config.resamples, config.seed)
            yield row_of(cell, "share", interval, "share")
            for metric, value in zip(ALONE, (min(values), max(values)), strict=True):
                yield Row(cell, metric, value, n=interval.n, unit="share")
    for dataset in selection.datasets:
        first, *_, last = [subject for subject in counted if subject.dataset == dataset]
        full = shares(last)
        for name, stats in shares(first).items():
            if name == SILENT:
                continue
            gap = compare(stats, full[name], Mean(name), config.resamples, config.seed)
            yield row_of((dataset, f"k = {first.k} minus {last.k}", name), "share", gap, "share")


# -------------------------------------------------------------------------------------------------------- examples


EXAMPLE_COLUMNS = (
    "dataset system guesser kind cost answer question found_as severity loss rank_before rank_after step read target "
    "source_at source probability"
).split()


def worst(subject: Subject, kind: Kind, costly: bool) -> list[Finding]:
    """Return the worst finding of a kind for each question.

    With `costly`, only findings that cost at least RULES.drop count, and the worst is the most costly finding.
    """
    findings = subject.findings(kind)
    if costly:
        findings = sorted((f for f in findings if subject.cost(f) >= RULES.drop - TINY), key=subject.cost, reverse=True)
    of_question: dict[str, Finding] = {}
    for finding in findings:
        of_question.setdefault(finding.question, finding)
    return list(of_question.values())


def main(config_path: Path, runs: Path) -> None:
    """Write counts, costs and examples, draw the worst error of each kind, and print the counts and costs.

    The table of examples has the columns of `sqa diagnose`, and also data set, system, guesser, kind, cost and answer.
    """
    selection = subjects(config_path, runs)
    outputs = Outputs(selection.folder)
    outputs.rows("errors_counts.csv", COUNTS, counts(selection), show=True)
    outputs.rows("errors_costs.csv", COSTS, costs(selection), show=True)
    kinds: dict[Kind, bool] = {kind.kind: kind.costly for kind in KINDS} | {"drop": True}
    lines = [EXAMPLE_COLUMNS]
    for subject in (subject for subject in selection.subjects if subject.k == selection.config.k):
        for kind, costly in kinds.items():
            examples, stem = worst(subject, kind, costly), f"{kind}_{subject.dataset}"
            for finding in examples[: selection.config.examples]:
                cost, page = f"{subject.cost(finding):.6f}", subject.trace(finding).question.page
                where = [subject.dataset, subject.system, subject.guesser, kind, cost, page]
                lines.append([*where, *findings_table([finding]).text[1]])
            if examples and kind != "drop":
                index = subject.index_of(examples[0])
                outputs.csv(f"{stem}.csv", subject.numbers(index))
                outputs.picture(stem, subject.draw, index, examples[0], f"{kind}: ")
            elif not examples:
                print(f"{subject.dataset}: no {kind} among the findings satisfies the rule", file=sys.stderr)
    outputs.csv("errors_examples.csv", lines)
    outputs.end()


ITEMS = (
    Item(
        "stepwise-costs",
        "cost of hallucinations, omissions and under-translations (log MRR)",
        "stepwise.yaml",
        COSTS,
        lambda config, runs: costs(subjects(config, runs)),
        grid_rows.inputs_beside,
    ),
    Item(
        "errors-over-k",
        "number of step-wise errors of each kind over k",
        "stepwise.yaml",
        COUNTS,
        lambda config, runs: counts(subjects(config, runs)),
        grid_rows.inputs_beside,
        {
            "differences": pivot(
                ("dataset", "kind"),
                [Column("share", "wait-3 minus full input", 3, sign=True, cell={"k": "k = 3 minus full"})],
            )
        },
    ),
)
