"""Measure Table 4: the answers of every system and reader on every set and language, and the entries left out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from experiments.outputs import LeftOut
from experiments.paper.table4_answers import AnyReader, Library, Steps, build_reader, is_yes_no
from experiments.paper.table4_config import ALL, DENSE, NOTHING, YES, System, Table4Config
from sqa.core import DataError, SqaError
from sqa.data.xor_tydi import OpenQuestion, load_xor_tydi
from sqa.files import Store
from sqa.metrics.short_answers import exact_match, f1
from sqa.pipeline import Parts


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
    """Return the answers of every system and reader, and the entries that cannot be measured.

    Raises DataError if no system can be measured.
    """
    outcomes = list(_answered(config, store))
    results = [outcome for outcome in outcomes if isinstance(outcome, Answered)]
    left_out = [outcome for outcome in outcomes if isinstance(outcome, LeftOut)]
    if not any(outcome.system != NOTHING for outcome in results):
        reasons = [f"{out.label}: {out.reason}" for out in left_out]
        raise DataError("\n".join(["table4: no system could be measured", *reasons]))
    return results, left_out


def _answered(config: Table4Config, store: Store) -> Iterator[Answered | LeftOut]:
    library, parts = Library(config.passages, config.depth, config.retriever), Parts()
    readers: dict[str, AnyReader] = {}  # by label
    for entry in (entry for entry in config.readers if entry.answer != YES):
        try:
            if entry.passages == DENSE:
                library.dense.fingerprint  # noqa: B018 refuses a missing encoder
            readers[entry.label] = build_reader(entry)
        except SqaError as error:
            yield from (_gone(name, ALL, ALL, entry.label, str(error)) for name in config.sets)
    for name, language in product(config.sets, config.languages):
        steps = Steps(load_xor_tydi(name, language, config.limit), library, store)
        yield from _one_set(name, language, steps, config, readers, parts)


def _one_set(
    name: str, language: str, steps: Steps, config: Table4Config, readers: Mapping[str, AnyReader], parts: Parts
) -> Iterator[Answered | LeftOut]:
    """Yield the answers on one set and language, in the order of the config."""
    questions = steps.questions
    for entry in config.readers:
        if entry.answer == YES:
            yield Answered(name, language, NOTHING, entry.label, questions, ["yes"] * len(questions))
    entries = [entry for entry in config.readers if entry.label in readers]
    for system in config.systems:
        if name not in system.sets or language not in system.languages:
            continue
        try:
            texts = english(system, steps, parts)
        except SqaError as error:
            yield _gone(name, language, system.label, ALL, str(error))
            continue
        for entry in entries:
            passages = steps.retrieved(texts, entry.passages == DENSE)
            answers = steps.answered(readers[entry.label], texts, passages)
            hits = [retrieval.rank > 0 for retrieval in passages]
            yield Answered(name, language, system.label, entry.label, questions, answers, texts, hits)


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
