"""Step-wise errors of wait-k translations: runs, findings, which one is shown.

Examples are chosen by rule, never by hand, from what `sqa diagnose` finds: of a kind the one that cost most log MRR, at
least ln 2 nats (rank 1 to 2), or where no cost is asked for the first of the ranking.  Kinds:

    hallucination      content words that no source word stands behind
    omission           a stretch of source that no word translates, in a sentence whose translation goes on after it
    under-translation  such a stretch after which nothing is written: the source is read on, the translation has ended

A hallucination costs what log MRR fell while it was written.  A stretch that is left out writes nothing, so its cost is
held against the human translation: how much more log MRR that one gained over the sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments.grid import AblationConfig
from experiments.made import Difference, LeftOut, Made
from experiments.stepwise.figure import draw, numbers
from experiments.stepwise.rows import RULES, Kind, Subject
from experiments.stepwise.systems import Found, systems
from sqa.core.significance import bootstrap_band
from sqa.run.config import load

FEW = 10  # sentences or words: a mean over fewer is not compared


@dataclass(frozen=True, slots=True)
class StepwiseConfig:
    """What the items on step-wise errors read; configs/stepwise.yaml explains each key."""

    name: str
    ablation: Path
    guesser: str
    k: int | str
    counted: tuple[int | str, ...]
    examples: int = 3


def subjects(config_path: Path, runs: Path, counted: bool = False) -> Found[StepwiseConfig]:
    """The systems of a config; `counted`: at all the k whose errors are counted."""
    config = load(config_path, StepwiseConfig)
    ks = config.counted if counted else (config.k,)
    return systems(config, config_path, runs, [("wait-k", k) for k in ks])


# ---------------------------------------------------------------------------------------------------------- differences


@dataclass(frozen=True, slots=True)
class Gap:
    """Difference of two means as a curve of one point, for `bootstrap_band`; stats (n, 4): sum, count, sum, count."""

    name: str

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        """(B, 4) -> (B, 1); nan where one of the two has no value."""
        counts = stats[:, 1::2]
        means = np.divide(stats[:, 0::2], counts, out=np.full(counts.shape, np.nan), where=counts > 0)
        return means[:, :1] - means[:, 1:]


def too_few(stats: np.ndarray) -> bool:
    """Whether one of the two means is of less than FEW."""
    return float(stats.sum(axis=0)[1::2].min()) < FEW


def gap_of(stats: np.ndarray, name: str, ablation: AblationConfig) -> tuple[float, float, float]:
    """A difference of means with its interval over questions."""
    band = bootstrap_band(stats, Gap(name), ablation.resamples, ablation.seed)
    return float(band.value[0]), float(band.low[0]), float(band.high[0])


def sentence_gap(subject: Subject, kind: Kind) -> np.ndarray:
    """(n, 4): log MRR lost against the human translation over sentences with such an error and over those without."""
    rows = []
    for place, errors in enumerate(subject.errors):
        bad = {f.sentence for f in errors.findings if subject.kind(f) == kind}
        deficits = np.array(subject.deficits(place))
        flags = np.array([sentence in bad for sentence in range(len(deficits))])
        rows.append([deficits[flags].sum(), flags.sum(), deficits[~flags].sum(), (~flags).sum()])
    return np.array(rows, dtype=np.float64)


def word_gap(subject: Subject) -> np.ndarray:
    """(n, 4): change of log MRR at hallucinated content words, and at all other words."""
    rows = []
    for errors, line in zip(subject.errors, subject.lines, strict=True):
        change = np.diff(line.log_mrr, prepend=RULES.floor)
        flags = np.array(errors.hallucinated, dtype=bool)
        rows.append([change[flags].sum(), flags.sum(), change[~flags].sum(), (~flags).sum()])
    return np.array(rows, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Item:
    """A figure of one example for each data set, and what errors of the kind cost over all questions.

    Claims, after Section 7 of Han, Carpuat and Boyd-Graber (2022): words that the translation invents mislead whoever
    answers; what is left out, or no longer written, cannot be answered from.
    """

    kind: Kind
    costly: bool  # only an example that cost RULES.drop or more
    claim: str
    unit: str
    gap: Callable[[Subject], np.ndarray]
    sign: int  # the side of 0 on which the claim puts the difference

    def difference(self, subject: Subject, ablation: AblationConfig) -> Difference:
        """The claim on one data set, above 0 where it is so; too few places: a note."""
        stats = self.gap(subject)
        total, where = stats.sum(axis=0), (subject.dataset, subject.system, subject.guesser)
        between = f"{total[1]:.0f} {self.unit} and {total[3]:.0f} others"
        if too_few(stats):
            return Difference(*where, self.claim, between, note=f"at least {FEW} of each are needed")
        value, *ends = (self.sign * x for x in gap_of(stats, self.claim, ablation))
        return Difference(*where, self.claim, between, value, min(ends), max(ends), len(stats))


ITEMS = (
    Item("hallucination", True, "log MRR changes for the worse at hallucinated content words", "hallucinated words",
         word_gap, -1),
    Item("omission", True, "over sentences with an omission more log MRR is lost against the human translation",
         "sentences with one", partial(sentence_gap, kind="omission"), 1),
    Item("under-translation", False,
         "over under-translated sentences more log MRR is lost against the human translation", "such sentences",
         partial(sentence_gap, kind="under-translation"), 1),
)  # fmt: skip


def make(item: Item, config_path: Path, runs: Path) -> None:
    """Draw an example for each data set, write its numbers and the differences; the latter on stdout."""
    found = subjects(config_path, runs)
    made, differences, left_out = Made(found.folder), [], [*found.left_out]
    for subject in found.subjects:
        differences.append(item.difference(subject, found.ablation))
        examples = subject.examples(item.kind, item.costly)
        if not examples:
            cost = f" that cost {RULES.drop:.2f} nats or more" if item.costly else ""
            left_out.append(LeftOut(f"{subject.dataset}, figure", f"no {item.kind}{cost} among its findings"))
            continue
        stem = f"{item.kind}_{subject.dataset}"
        made.csv(f"{stem}.csv", numbers(subject, examples[0]))
        made.add(draw(subject, examples[0], found.folder, stem))
    made.differences(differences, left_out, f"{item.kind}_differences.tsv")
    made.end()


hallucination, omission, under_translation = (partial(make, item) for item in ITEMS)  # of `sqa reproduce`
