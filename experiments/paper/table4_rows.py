"""What Table 4 is configured with, and what it finds: systems, readers, answers, what was not computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from experiments.contestant import Value
from experiments.contestants import check_labels
from guessers.open_qa.lm_reader import LmReaderConfig
from guessers.open_qa.reader import ReaderConfig
from sqa.core.errors import ConfigError
from sqa.data.xor_tydi import LANGUAGES, SPLITS, OpenQuestion
from sqa.metrics.short_answers import exact_match, f1, normalise
from sqa.run.config import ComponentConfig, run_from_mapping

# human: XOR-TyDi's translators; source: as it stands, in its own language; trained:
# experiments/paper/xor_translator.py, trained first where it is not; translated: by `translator`
Question = Literal["human", "source", "trained", "translated"]
YES = "always-yes"
GOLD = "gold"  # of `ReaderEntry.passages`
ALL = "all"  # in place of a language, system or reader that something is missing for
NOTHING = "-"  # the "system" of a reader that reads no question


@dataclass(frozen=True, slots=True)
class System:
    """A way to put questions into English."""

    label: str
    question: Question = "translated"
    translator: dict[str, Value] = field(default_factory=dict)  # as in a run's config; for "translated"
    languages: tuple[str, ...] = LANGUAGES  # those it is for
    sets: tuple[str, ...] = SPLITS[:2]  # those it is for; a file of translations is of one set

    def __post_init__(self) -> None:
        wrong = _unknown(self)
        if (self.question == "translated") != bool(self.translator):
            wrong.append("translator: needed for question: translated, and for nothing else")
        if wrong:
            raise ConfigError(wrong)
        if self.translator:
            self.component()

    def component(self) -> ComponentConfig:
        """The translator's checked config."""
        run = {"name": "table4", "dataset": {"name": "mini-es"}, "translator": self.translator, "metrics": ("bleu",)}
        return run_from_mapping(run).translator


@dataclass(frozen=True, slots=True)
class ReaderEntry:
    """A way to answer."""

    label: str
    answer: Literal["title", "typed", "model", "lm", "always-yes"]
    model: ReaderConfig | None = None  # for answer: model
    lm: LmReaderConfig | None = None  # for answer: lm
    passages: Literal["retrieved", "gold"] = "retrieved"  # gold: one that says the answer, for each question with one
    sample: int | None = None  # questions of each set and language, drawn by the config's seed; null = all

    def __post_init__(self) -> None:
        wrong = [
            f"{key}: needed for answer: {key}, and for nothing else"
            for key, given in (("model", self.model), ("lm", self.lm))
            if (self.answer == key) != (given is not None)
        ]
        if self.sample is not None and self.sample < 1:
            wrong.append(f"sample: must be >= 1 or null, got {self.sample}")
        if self.answer == YES and (self.passages, self.sample) != ("retrieved", None):
            wrong.append(f"passages, sample: {YES} reads nothing and costs nothing; leave them out")
        if wrong:
            raise ConfigError(wrong)


@dataclass(frozen=True, slots=True)
class Table4Config:
    """What `sqa reproduce table4` reads; configs/table4.yaml explains each key."""

    name: str
    systems: tuple[System, ...]
    readers: tuple[ReaderEntry, ...]
    sets: tuple[str, ...] = SPLITS[:2]
    languages: tuple[str, ...] = LANGUAGES
    passages: Path | None = None
    depth: int = 10
    resamples: int = 1000
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        wrong = _unknown(self)
        for key, entries in (("systems", self.systems), ("readers", self.readers)):
            labels = [] if entries else [f"{key}: at least one is needed"]
            wrong += labels if key == "systems" else check_labels(self.readers, "readers")
        for language in self.languages:
            of = [(s.label, one) for s in self.systems if language in s.languages for one in s.sets]
            twice = sorted({label for label, one in of if of.count((label, one)) > 1})
            wrong += [f"systems: the label {label!r} is there twice for {language}" for label in twice]
        wrong += [*_alike("systems", self.systems), *_alike("readers", self.readers)]
        wrong += [
            f"{key}: must be >= 1, got {getattr(self, key)}"
            for key in ("depth", "resamples", "limit")
            if getattr(self, key) is not None and getattr(self, key) < 1
        ]
        if wrong:
            raise ConfigError(wrong)


def _alike(key: str, entries: Sequence[System] | Sequence[ReaderEntry]) -> list[str]:
    """Different labels that would give files of predictions the same name."""
    labels: dict[str, str] = {}  # part of a file's name -> the first label that gives it
    firsts = [(labels.setdefault(plain(entry.label), entry.label), entry.label) for entry in entries]
    return [f"{key}: the labels {a!r} and {b!r} are too much alike for file names" for a, b in firsts if a != b]


def _unknown(config: System | Table4Config) -> list[str]:
    """Sets and languages that are none, and lists of them that are empty."""
    wrong = []
    for key, known in (("sets", SPLITS[:2]), ("languages", LANGUAGES)):
        given = getattr(config, key)
        wrong += [] if given else [f"{key}: at least one of {', '.join(known)} is needed"]
        wrong += [f"{key}: expected {' or '.join(known)}, got {name!r}" for name in given if name not in known]
    return wrong


@dataclass(frozen=True, eq=False)
class Answered:
    """One system and reader on one set and language."""

    set: str
    language: str
    system: str  # label, or NOTHING
    reader: str  # label
    questions: list[OpenQuestion]
    texts: list[str] | None  # the questions as the system puts them; None for NOTHING
    answers: list[str]  # "" = none
    found: np.ndarray | None  # (n,) 1 if a retrieved passage has a right answer, else 0, nan = yes/no; None = no search

    @cached_property
    def spans(self) -> np.ndarray:
        """(n,) bool: the answer is neither yes nor no."""
        return np.array([not is_yes_no(question) for question in self.questions])

    @cached_property
    def em(self) -> np.ndarray:
        """(n,) 0 or 1."""
        return np.array([exact_match(a, q.answers) for a, q in zip(self.answers, self.questions, strict=True)])

    @cached_property
    def f1(self) -> np.ndarray:
        """(n,) 0..1."""
        return np.array([f1(a, q.answers) for a, q in zip(self.answers, self.questions, strict=True)])


class NotComputed(NamedTuple):
    """A line of the table without numbers; ALL stands for every language, system or reader."""

    set: str
    language: str
    system: str
    reader: str
    reason: str


def is_yes_no(question: OpenQuestion) -> bool:
    """True if a right answer is yes or no."""
    return any(normalise(answer) in ("yes", "no") for answer in question.answers)


def plain(label: str) -> str:
    """A label as part of a file's name."""
    return "".join(c if c.isalnum() else "-" for c in label.lower())
