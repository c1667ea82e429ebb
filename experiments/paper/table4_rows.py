"""What Table 4 is configured with, and what it finds: systems, readers, answers, what was not computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from experiments.contestants import Value
from guessers.open_qa.lm_reader import LmReaderConfig
from guessers.open_qa.reader import ReaderConfig
from sqa.core.errors import ConfigError, Count, checked
from sqa.data.xor_tydi import OpenQuestion
from sqa.metrics.short_answers import exact_match, f1, normalise
from sqa.run.config import ComponentConfig, of_parts

# human: XOR-TyDi's translators; source: as it stands, in its own language; trained:
# experiments/paper/xor_translator.py, trained first where it is not; translated: by `translator`
Question = Literal["human", "source", "trained", "translated"]
Set = Literal["dev-engspan", "train-engspan"]
Language = Literal["fi", "ru"]
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
    languages: tuple[Language, ...] = ("fi", "ru")  # those it is for
    sets: tuple[Set, ...] = ("dev-engspan", "train-engspan")  # those it is for; a file of translations is of one set

    def __post_init__(self) -> None:
        if (self.question == "translated") != bool(self.translator):
            raise ConfigError("translator: needed for question: translated, and for nothing else")
        if self.translator:
            self.component()

    def component(self) -> ComponentConfig:
        """The translator's checked config."""
        return of_parts(translator=self.translator).translator


@dataclass(frozen=True, slots=True)
@checked
class ReaderEntry:
    """A way to answer."""

    label: str
    answer: Literal["title", "typed", "model", "lm", "always-yes"]
    model: ReaderConfig | None = None  # for answer: model
    lm: LmReaderConfig | None = None  # for answer: lm
    passages: Literal["retrieved", "gold"] = "retrieved"  # gold: one that says the answer, for each question with one
    sample: Count | None = None  # questions of each set and language, drawn by the config's seed; null = all

    def problems(self) -> list[str]:
        """What the declared bounds do not check."""
        wrong = [
            f"{key}: needed for answer: {key}, and for nothing else"
            for key, value in (("model", self.model), ("lm", self.lm))
            if (self.answer == key) != (value is not None)
        ]
        return wrong


@dataclass(frozen=True, slots=True)
@checked
class Table4Config:
    """What `sqa reproduce table4` reads; configs/table4.yaml explains each key."""

    name: str
    systems: tuple[System, ...]
    readers: tuple[ReaderEntry, ...]
    sets: tuple[Set, ...] = ("dev-engspan", "train-engspan")
    languages: tuple[Language, ...] = ("fi", "ru")
    passages: Path | None = None
    depth: Count = 10
    resamples: Count = 1000
    seed: int = 0
    limit: Count | None = None

    def problems(self) -> list[str]:
        """What the declared bounds do not check."""
        files = [("readers", plain(entry.label), "") for entry in self.readers]
        files += [
            ("systems", plain(entry.label), f" for {language} of {name}")
            for entry in self.systems
            for language in entry.languages
            for name in entry.sets
        ]
        wrong = [
            f"{key}: two labels give files of predictions the name {name!r}{where}"
            for key, name, where in dict.fromkeys(files)
            if files.count((key, name, where)) > 1
        ]
        return wrong


@dataclass(frozen=True, eq=False)
class Answered:
    """One system and reader on one set and language."""

    set: str
    language: str
    system: str  # label, or NOTHING
    reader: str  # label
    questions: list[OpenQuestion]
    answers: list[str]  # "" = none
    texts: list[str] | None = None  # the questions as the system puts them; None for NOTHING
    found: list[bool] | None = None  # whether a retrieved passage has a right answer; None = no search

    @cache  # noqa: B019 as long as the results, which are all compared with one another
    def values(self, metric: str) -> np.ndarray:
        """(n,) 0..1, nan for questions that the metric leaves out."""
        spans = np.array([not is_yes_no(question) for question in self.questions])
        if metric == "found":
            return np.full(len(spans), np.nan) if self.found is None else np.where(spans, self.found, np.nan)
        score = exact_match if metric.startswith("em") else f1
        values = [score(a, q.answers) for a, q in zip(self.answers, self.questions, strict=True)]
        return np.where({"yes_no": ~spans, "spans": spans}.get(metric.partition(".")[2], True), values, np.nan)


def is_yes_no(question: OpenQuestion) -> bool:
    """True if a right answer is yes or no."""
    return any(normalise(answer) in ("yes", "no") for answer in question.answers)


def plain(label: str) -> str:
    """A label as part of a file's name."""
    return "".join(c if c.isalnum() else "-" for c in label.lower())
