"""What the guessers' report is configured with, and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from experiments.contestant import Value, components
from experiments.contestants import check_labels
from experiments.made import LeftOut
from guessers.evaluate import DEPTH
from sqa.core.errors import ConfigError
from sqa.core.significance import Band
from sqa.metrics.curve import curve_named

DEPTHS = (1, 10, DEPTH)
MEASURES = (*(f"acc@{depth}" for depth in DEPTHS), "mrr", "ew")  # the order of the statistics
ALL, GUESSABLE = "all", "guessable"  # groups beside the categories


@dataclass(frozen=True, slots=True)
class Entry:
    """A guesser of the report."""

    label: str  # in table and figure
    guesser: dict[str, Value]  # as in a run's config
    optional: bool = False  # left out, with the reason, where it cannot be had
    every_word: bool = True  # ask it for all prefixes at once if it can; false = for those at the fractions only

    def __post_init__(self) -> None:
        if not self.optional:
            components(self.guesser)


@dataclass(frozen=True, slots=True)
class ReportConfig:
    """What `sqa guessers CONFIG` reads; configs/guessers.yaml explains each key."""

    name: str
    datasets: tuple[str, ...]
    fallback: tuple[str, ...]
    guessers: tuple[Entry, ...]
    fractions: tuple[float, ...]
    curve: str = "qanta2018"  # a published one, or a .json of `sqa curve fit`
    resamples: int = 1000
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        problems = check_labels(self.guessers, "guessers")
        if list(self.fractions) != sorted(set(self.fractions)) or not all(0 < f <= 1 for f in self.fractions):
            problems.append(f"fractions: must grow, above 0 and at most 1, got {list(self.fractions)}")
        if not self.fractions or self.fractions[-1] != 1:
            problems.append("fractions: the last must be 1, the complete question")
        try:
            curve_named(self.curve)
        except ConfigError as error:
            problems += error.problems
        problems += [
            f"{key}: must be >= 1, got {getattr(self, key)}"
            for key in ("resamples", "limit")
            if getattr(self, key) is not None and getattr(self, key) < 1
        ]
        if problems:
            raise ConfigError(problems)


class Row(NamedTuple):
    """One guesser on one group of questions of one data set."""

    dataset: str
    group: str  # ALL, GUESSABLE or a category
    guesser: str  # label
    n: int  # questions of the group
    band: Band | None  # (measures * fractions,), measure by measure; None where the group is empty

    def at(self, measure: str, fraction: int) -> tuple[float, float, float] | None:
        """Value, low and high of a measure at the fraction of an index (-1: the complete question)."""
        if self.band is None:
            return None
        per = len(self.band.value) // len(MEASURES)
        place = MEASURES.index(measure) * per + fraction % per
        return float(self.band.value[place]), float(self.band.low[place]), float(self.band.high[place])


class DatasetRow(NamedTuple):
    """A line of Table 1."""

    dataset: str
    questions: int
    source_words: float  # words per question
    english_words: float  # words per question
    pages: int  # different answers
    guessable: dict[str, int | None]  # label -> questions whose page the guesser knows; None = it does not say
    nobody: int | None  # questions whose page none of the guessers knows; None = one of them does not say


class Report(NamedTuple):
    """All there is to write."""

    rows: list[Row]
    datasets: list[DatasetRow]
    left_out: list[LeftOut]
    fingerprints: dict[str, str]  # label -> of the guesser: its weights, config and code version
