"""Config of Table 4: systems that translate the questions into English, readers that answer them, question sets."""

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from experiments.contestants import twice
from experiments.paper.table4_answers import ReaderEntry
from sqa.core import Count, checked
from sqa.pipeline import QualityConfig, read_parts

MEAN = "mean"  # mean over the languages
COLUMNS = ("set", "language", "system", "reader")
METRICS = ("em", "f1", "em.spans", "f1.spans", "em.yes_no", "found")
DIFFERENCES = ("em", "f1", "f1.spans")
MINUS = " minus "  # separates the names of the two systems of a difference
YES = "always-yes"
DENSE = "dense"  # a value of `ReaderEntry.passages`
ALL = "all"  # stands for every language, system or reader of an entry without numbers
NOTHING = "-"  # the "system" of a reader that does not read the question
RANK = {"human": 0, "trained": 1, "translated": 1, "source": 2, NOTHING: 3}  # a difference is lower minus higher rank

Group = tuple[str, str, str, str]  # set, language or MEAN, system, reader

# human: XOR-TyDi's translation; source: the untranslated question; trained: translated by a model of
# experiments/paper/xor_translator.py, which is trained first if needed; translated: translated by `translator`
Question = Literal["human", "source", "trained", "translated"]
Set = Literal["dev-engspan", "train-engspan"]
Language = Literal["fi", "ru"]


@dataclass(frozen=True, slots=True)
@checked
class System:
    """A way to translate questions into English."""

    label: str
    question: Question = "translated"
    translator: dict[str, Any] = field(default_factory=dict)  # translator of a run's config; for "translated"
    languages: tuple[Language, ...] = ("fi", "ru")  # languages of the questions that it translates
    sets: tuple[Set, ...] = ("dev-engspan", "train-engspan")  # a file of translations covers only one set

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check; raises ConfigError for an invalid translator."""
        if (self.question == "translated") != bool(self.translator):
            return ["translator: needed for question: translated, and for nothing else"]
        if self.translator:
            read_parts(translator=self.translator)
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
    retriever: str | None = None
    quality: tuple[QualityConfig, ...] = ()
    resamples: Count = 1000
    seed: int = 0
    limit: Count | None = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        files = [("readers", plain(entry.label), "") for entry in self.readers]
        for entry in self.systems:
            cells = product(entry.languages, entry.sets)
            files += [("systems", plain(entry.label), f" for {language} of {name}") for language, name in cells]
        problem = "two labels give the same name of a predictions file:"
        dense = [entry for entry in self.readers if entry.passages == DENSE]
        problems = ["retriever: needed for passages: dense"] if dense and self.retriever is None else []
        return problems + [f"{key}: {problem} {name!r}{where}" for key, name, where in twice(files)]


def plain(label: str) -> str:
    """Return a label in lower case, with every character that is not alphanumeric replaced by a hyphen."""
    return "".join(c if c.isalnum() else "-" for c in label.lower())
