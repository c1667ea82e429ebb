"""The systems and readers of Table 4: their config, and their answers on every question set and language."""

from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from experiments.contestants import twice
from experiments.outputs import LeftOut
from experiments.paper.table4_answers import AnyReader, Library, ReaderEntry, Steps, build_reader, is_yes_no
from sqa.core import Count, DataError, SqaError, checked
from sqa.data.xor_tydi import OpenQuestion, load_xor_tydi
from sqa.files import Store
from sqa.metrics.short_answers import exact_match, f1
from sqa.pipeline import Parts, QualityConfig, read_parts

YES = "always-yes"
DENSE = "dense"  # a value of `ReaderEntry.passages`
ALL = "all"  # stands for every language, system or reader of an entry without numbers
NOTHING = "-"  # the "system" of a reader that does not read the question


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


# ------------------------------------------------------------------------------------------------------------ answers


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of one system and reader on one set and language."""

    set: str
    language: str
    system: str  # label, or NOTHING
    reader: str  # label
    questions: list[OpenQuestion]
    answers: list[str]  # "" = no answer
    texts: list[str] | None = None  # translated questions; None for NOTHING
    found: list[bool] | None = None  # for each question, whether a passage contains a right answer; None = no passages

    @cache  # noqa: B019 all instances are needed until the end, because they are compared with each other
    def values(self, metric: str) -> np.ndarray:
        """Return the metric of each question (0 to 1), as an array (n,); nan for questions that the metric omits."""
        spans = np.array([not is_yes_no(question) for question in self.questions])
        if metric == "found":
            return np.full(len(spans), np.nan) if self.found is None else np.where(spans, self.found, np.nan)
        score = exact_match if metric.startswith("em") else f1
        values = [score(a, q.answers) for a, q in zip(self.answers, self.questions, strict=True)]
        return np.where({"yes_no": ~spans, "spans": spans}.get(metric.partition(".")[2], True), values, np.nan)


def measure(config: Table4Config, store: Store) -> tuple[list[Answered], list[LeftOut]]:
    """Return the answers of every system and reader, in the order of the config, and the entries left out.

    Raises DataError if no system can be measured.
    """
    library, parts = Library(config.passages, config.depth, config.retriever), Parts()
    results: list[Answered] = []
    left_out: list[LeftOut] = []
    readers: list[tuple[ReaderEntry, AnyReader]] = []
    for entry in (entry for entry in config.readers if entry.answer != YES):
        try:
            if entry.passages == DENSE:
                library.dense.fingerprint  # noqa: B018 refuses a missing encoder
            readers.append((entry, build_reader(entry)))
        except SqaError as error:
            left_out += [_gone(name, ALL, ALL, entry.label, str(error)) for name in config.sets]
    for name, language in product(config.sets, config.languages):
        questions = load_xor_tydi(name, language, config.limit)
        steps, yes = Steps(questions, library, store), ["yes"] * len(questions)
        constant = (entry for entry in config.readers if entry.answer == YES)
        results += [Answered(name, language, NOTHING, entry.label, questions, yes) for entry in constant]
        for system in config.systems:
            if name not in system.sets or language not in system.languages:
                continue
            try:
                texts = english(system, steps, parts)
            except SqaError as error:
                left_out.append(_gone(name, language, system.label, ALL, str(error)))
                continue
            for entry, reader in readers:
                passages = steps.retrieved(texts, entry.passages == DENSE)
                answers = steps.answered(reader, texts, passages)
                hits = [retrieval.rank > 0 for retrieval in passages]
                results.append(Answered(name, language, system.label, entry.label, questions, answers, texts, hits))
    if not any(result.system != NOTHING for result in results):
        reasons = [f"{out.label}: {out.reason}" for out in left_out]
        raise DataError("\n".join(["table4: no system could be measured", *reasons]))
    return results, left_out


def english(system: System, steps: Steps, parts: Parts) -> list[str]:
    """Return the system's English translation of each question; raises SqaError with the reason if it has none."""
    questions: list[OpenQuestion] = steps.questions
    if system.question == "source":
        return [question.text for question in questions]
    if system.question == "human":
        english_texts = [question.translation for question in questions if question.translation is not None]
        if missing := len(questions) - len(english_texts):
            raise DataError(f"{missing} of {len(questions)} questions have no human translation")
        return english_texts
    translator = system.translator
    if system.question == "trained":
        from experiments.paper import xor_translator

        translator = {"name": "pbmt", "model": str(xor_translator.model(questions[0].language, steps.store.root))}
    return steps.translated(translator, parts)


def _gone(name: str, language: str, system: str, reader: str, why: str) -> LeftOut:
    """Return the entry for a combination that cannot be measured; ALL stands for every language, system or reader."""
    return LeftOut(f"{name} {language} {system} {reader}", " ".join(why.split()))
