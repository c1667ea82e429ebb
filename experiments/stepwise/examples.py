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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.contestants import VERDICTS, LeftOut
from experiments.grid import AblationConfig
from experiments.stepwise.rows import RULES, Kind, StepwiseConfig, Subject
from experiments.stepwise.systems import check_guesser, systems
from experiments.verdicts import of_interval
from sqa.core.errors import ConfigError
from sqa.core.significance import bootstrap_band
from sqa.files.store import write_text
from sqa.run.config import load
from sqa.run.folder import tsv

READING = ("all", "-", "-", "content of this item", "no comparison", "our own item; the paper has none like it")
FEW = 10  # sentences or words: a mean over fewer is not compared


class Found(NamedTuple):
    """What an item is made from."""

    config: StepwiseConfig
    ablation: AblationConfig
    subjects: list[Subject]
    left_out: list[LeftOut]
    folder: Path  # the item's results go here


def subjects(config_path: Path, runs: Path, counted: bool = False) -> Found:
    """The systems of a config, see `systems`; `counted`: at all the k whose errors are counted."""
    config = load(config_path, StepwiseConfig)
    text = (config_path.read_bytes(), (config_path.parent / config.ablation).read_bytes())
    return _subjects(config_path.resolve(), runs.resolve(), counted, text)


@lru_cache(maxsize=1)
def _subjects(config_path: Path, runs: Path, counted: bool, _: tuple[bytes, bytes]) -> Found:
    """One `sqa reproduce all` looks the runs of all items up once; the texts of both configs are in the key."""
    config = load(config_path, StepwiseConfig)
    base = load(config_path.parent / config.ablation, AblationConfig)
    ks = config.counted if counted else (config.k,)
    problems = [f"k: {k} is not in {config.ablation}" for k in (config.k, *config.counted) if k not in base.k]
    problems += check_guesser(base, config.guesser, config.ablation)
    if problems:
        raise ConfigError(problems)
    found, left_out = systems(base, config.guesser, {("wait-k", k) for k in ks}, runs)
    return Found(config, base, found, left_out, runs / config.name)


# ---------------------------------------------------------------------------------------------------------- verdicts


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


def verdict(
    subject: Subject, claim: str, unit: str, stats: np.ndarray, sign: int, ablation: AblationConfig
) -> tuple[str, ...]:
    """The cells of a verdict on a difference of means; `sign` = which side of 0 the claim puts it on."""
    total, where = stats.sum(axis=0), (subject.dataset, subject.system, subject.guesser)
    if too_few(stats):
        numbers = f"{total[1]:.0f} {unit} and {total[3]:.0f} others, at least {FEW} of each are needed"
        return (*where, claim, "not computed", numbers)
    value, low, high = gap_of(stats, claim, ablation)
    numbers = f"{total[0] / total[1]:+.3f} over {total[1]:.0f} {unit}, {total[2] / total[3]:+.3f} over {total[3]:.0f} "
    numbers += f"others, difference {value:+.3f} [{low:+.3f}, {high:+.3f}] nats"
    ends = (low, high) if sign > 0 else (-high, -low)
    return of_interval(*where, claim, numbers, sign * value, *ends).cells()


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


def write_judged(judged: Sequence[tuple[str, ...]], left_out: Sequence[LeftOut], path: Path) -> Path:
    """Write verdicts as TSV, then what was left out and what the item is."""
    rest = [("all", "wait-k", out.label, "-", "not computed", out.reason) for out in left_out]
    write_text(path, tsv(VERDICTS, [*judged, *rest, READING]))
    return path


@dataclass(frozen=True, slots=True)
class Item:
    """A figure of one example per data set."""

    kind: Kind
    costly: bool  # only an example that cost RULES.drop or more
    judge: Callable[[Subject, AblationConfig], tuple[str, ...]]


def make(item: Item, config_path: Path, runs: Path) -> None:
    """Draw an example per data set, write its numbers and the verdicts; the verdicts on stdout."""
    from experiments.stepwise.figure import draw, numbers

    found = subjects(config_path, runs)
    paths, judged = [], []
    for subject in found.subjects:
        judged.append(item.judge(subject, found.ablation))
        examples = subject.examples(item.kind, item.costly)
        if not examples:
            cost = f" that cost {RULES.drop:.2f} nats or more" if item.costly else ""
            where = (subject.dataset, subject.system, subject.guesser, "there is an example")
            judged.append((*where, "not computed", f"no {item.kind}{cost} among its findings; no figure"))
            continue
        stem = f"{item.kind}_{subject.dataset}"
        paths.append(numbers(subject, examples[0], found.config, found.folder / f"{stem}.csv"))
        paths += draw(subject, examples[0], found.config, found.folder, stem)
    paths.append(write_judged(judged, found.left_out, found.folder / f"{item.kind}_verdicts.tsv"))
    print(paths[-1].read_text(encoding="utf-8"), end="")
    for path in paths:
        print(path)
