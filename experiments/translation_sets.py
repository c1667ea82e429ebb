"""Test sets for translators: question sets, parts of the parallel text of a language pair, or files of sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import did_you_mean
from sqa.core.types import Question
from sqa.data import datasets, download, texts
from sqa.files import records


@dataclass(frozen=True, slots=True)
class SetConfig:
    """One test set."""

    name: Annotated[str, "a question set, a part of the parallel text of `pair`, or your own file"]
    pair: Annotated[str, "language pair of the translators: es-en, pl-en"]


def load_set(config: SetConfig, limit: int | None) -> tuple[str, list[Question]]:
    """Return the data set name of a test set for a run's config, and its segments as questions.

    Raises DataError if the set is not available, and ConfigError if it is unknown or in another language.
    """
    language, name = config.pair.partition("-")[0], config.name
    parts = texts.parallel_parts(config.pair)
    if name in parts:
        pairs = [(pair.source, pair.target) for pair in islice(texts.load_parallel(config.pair, name), limit)]
        return str(download.entry(f"mt-{config.pair}-{name}").path), _sentences(name, language, pairs)
    if Path(name).suffix == ".tsv":
        if not Path(name).is_file():
            raise DataError(f"{name}: this file of sentences does not exist")
        pairs = [(row[0], row[1]) for row in islice(records.table(Path(name), 2), limit)]
        return name, _sentences(name, language, pairs)
    if name not in datasets.question_sets() and not Path(name).suffix:
        names = (*datasets.question_sets(), *parts)
        raise ConfigError(f"sets: no test set {name!r}{did_you_mean(name, names)}; known: {', '.join(names)}")
    questions = datasets.load_questions(name, limit)
    if others := {question.language for question in questions} - {language}:
        raise ConfigError(f"sets: {name} is in {', '.join(sorted(others))}, but its pair is {config.pair}")
    return name, questions


def _sentences(name: str, language: str, pairs: Sequence[tuple[str, str]]) -> list[Question]:
    """Return each pair as a question with one sentence."""
    questions = []
    for i, (source, target) in enumerate(pairs):
        words, english = tuple(source.split()), target.strip()
        if not words or not english:
            raise DataError(f"{name}: line {i + 1} has an empty side")
        questions.append(Question(f"{name}-{i}", name, language, (words,), (english,), page=""))
    if not questions:
        raise DataError(f"{name}: contains no sentences")
    return questions
