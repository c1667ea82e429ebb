"""Config of Table 4: the systems that put questions into English, the readers that answer, the question sets."""

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from experiments.contestants import twice
from experiments.paper.table4_answers import ReaderEntry
from sqa.core.schema import Count, checked
from sqa.pipeline.config import of_parts

MEAN = "mean"  # of the languages
COLUMNS = ("set", "language", "system", "reader")
METRICS = ("em", "f1", "em.spans", "f1.spans", "em.yes_no", "found")
DIFFERENCES = ("em", "f1", "f1.spans")
MINUS = " minus "  # between the two systems of a difference
YES = "always-yes"
GOLD = "gold"  # of `ReaderEntry.passages`
ALL = "all"  # in place of a language, system or reader that something is missing for
NOTHING = "-"  # the "system" of a reader that reads no question
RANK = {"human": 0, "trained": 1, "translated": 1, "source": 2, NOTHING: 3}  # of two the lower comes first

Group = tuple[str, str, str, str]  # set, language or MEAN, system, reader

# human: XOR-TyDi's translators; source: as it stands, in its own language; trained:
# experiments/paper/xor_translator.py, trained first where it is not; translated: by `translator`
Question = Literal["human", "source", "trained", "translated"]
Set = Literal["dev-engspan", "train-engspan"]
Language = Literal["fi", "ru"]


@dataclass(frozen=True, slots=True)
@checked
class System:
    """A way to put questions into English."""

    label: str
    question: Question = "translated"
    translator: dict[str, Any] = field(default_factory=dict)  # as in a run's config; for "translated"
    languages: tuple[Language, ...] = ("fi", "ru")  # those it is for
    sets: tuple[Set, ...] = ("dev-engspan", "train-engspan")  # those it is for; a file of translations is of one set

    def problems(self) -> list[str]:
        """Return problems beyond the declared bounds; a wrong translator: ConfigError."""
        if (self.question == "translated") != bool(self.translator):
            return ["translator: needed for question: translated, and for nothing else"]
        if self.translator:
            of_parts(translator=self.translator)
        return []


@dataclass(frozen=True, slots=True)
@checked
class Table4Config:
    """Keys of `sqa reproduce table4`; configs/table4.yaml explains them."""

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
        """Return problems beyond the declared bounds."""
        files = [("readers", plain(entry.label), "") for entry in self.readers]
        for entry in self.systems:
            cells = product(entry.languages, entry.sets)
            files += [("systems", plain(entry.label), f" for {language} of {name}") for language, name in cells]
        problem = "two labels give files of predictions the name"
        return [f"{key}: {problem} {name!r}{where}" for key, name, where in twice(files)]


def plain(label: str) -> str:
    """Return a label as part of a file's name."""
    return "".join(c if c.isalnum() else "-" for c in label.lower())
