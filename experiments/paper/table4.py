"""Table 4: does a better translation of the question give better answers?  Full input, XOR-TyDi Finnish and Russian.

    sqa reproduce table4

Each question is put into English as a whole (k = infinity), BM25 finds passages for it, and a reader takes a short
answer from these.  Exact match and F1 by XOR-TyDi's official rule (`sqa.metrics.short_answers`), mean over fi and ru as
the official script averages languages, 95% bootstrap intervals over questions, and paired differences of every two
translations, the better one first.

Claims, after Table 4 of Han, Carpuat and Boyd-Graber (2022), judged for each set, language and reader by F1:
    - answers to a human translation are better than answers to the untranslated question (the floor);
    - answers to a machine translation are better than that floor, and worse than those to a human one;
    - a reader beats the answer "yes" to everything, which needs neither translation nor passage.
The paper's scores stand below ours; they are of its Wikipedia passages and of a trained reader.

A language model reads, too, with the retrieved passages and with one that says the answer ("gold": looked up with the
human translation and the answer together, so only where a set has both; yes/no questions have none).

The machine translation that needs no download is phrase-based, learnt from XOR-TyDi's own translations of other
questions (experiments/paper/xor_translator.py): a weak one.

Sets: dev-engspan is the official one, but nobody translated its questions; train-engspan has a human translation of
every question.  A system whose model, program or file is missing is in the table as "not computed", with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.made import LeftOut, Made
from experiments.paper.table4_answers import AnyReader, Found, Library, Steps, build_reader
from experiments.paper.table4_report import COLUMNS, MINUS, claim, rows_of
from experiments.paper.table4_rows import (
    ALL,
    GOLD,
    NOTHING,
    YES,
    Answered,
    NotComputed,
    ReaderEntry,
    System,
    Table4Config,
    plain,
)
from sqa.core.errors import DataError, SqaError
from sqa.data.xor_tydi import OpenQuestion, load_xor_tydi
from sqa.files.store import Store, write_text
from sqa.run.config import load
from sqa.run.parts import Parts


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce table4`: answer what the store lacks; table, predictions, differences; the last on stdout."""
    config = load(config_path, Table4Config)
    results, left_out = measure(config, Store(runs))
    made = Made(runs / config.name)
    for one in results:
        path = made.folder / "predictions" / "_".join([one.set, one.language, plain(one.system), plain(one.reader)])
        predictions = {q.id: answer for q, answer in zip(one.questions, one.answers, strict=True)}
        write_text(path.with_suffix(".json"), json.dumps(predictions, ensure_ascii=False, indent=0) + "\n")
    rows = list(rows_of(results, config))
    made.rows("table4.csv", COLUMNS, rows)
    out = [LeftOut(" ".join(one[:-1]), one.reason) for one in left_out]
    made.differences((claim(row) for row in rows if MINUS in row.cell[2] and row.metric == "f1"), out)
    made.end()


def measure(config: Table4Config, store: Store) -> tuple[list[Answered], list[NotComputed]]:
    """Every system and reader on every set and language, and what has no numbers.  None at all: DataError."""
    library, parts = Library(config.passages, config.depth), Parts()
    results: list[Answered] = []
    left_out: list[NotComputed] = []
    readers: dict[str, AnyReader] = {}  # by label
    for entry in config.readers:
        try:
            if entry.answer != YES:
                readers[entry.label] = build_reader(entry)
        except SqaError as error:
            left_out += [NotComputed(name, ALL, ALL, entry.label, _line(error)) for name in config.sets]
    for name in config.sets:
        for language in config.languages:
            steps = Steps(load_xor_tydi(name, language, config.limit), library, store)
            for one in _one_set(name, language, steps, config, readers, parts):
                (results if isinstance(one, Answered) else left_out).append(one)
    if not any(one.system != NOTHING for one in results):
        reasons = [f"{o.set} {o.language} {o.system} {o.reader}: {o.reason}" for o in left_out]
        raise DataError("\n".join(["table4: no system could be measured", *reasons]))
    return results, left_out


def _one_set(
    name: str, language: str, steps: Steps, config: Table4Config, readers: Mapping[str, AnyReader], parts: Parts
) -> Iterator[Answered | NotComputed]:
    """All of one set and language, in the order of the config."""
    questions = steps.questions
    for entry in config.readers:
        if entry.answer == YES:
            yield Answered(name, language, NOTHING, entry.label, questions, ["yes"] * len(questions))
    entries = [entry for entry in config.readers if entry.label in readers]
    given = steps.gold() if any(entry.passages == GOLD for entry in entries) else None
    for entry in entries:
        if entry.passages == GOLD and given is None:
            reason = "no human translation to look up gold passages with"
            yield NotComputed(name, language, ALL, entry.label, reason)
    for system in config.systems:
        if name not in system.sets or language not in system.languages:
            continue
        try:
            texts = english(system, steps, parts)
        except SqaError as error:
            yield NotComputed(name, language, system.label, ALL, _line(error))
            continue
        found = steps.retrieved(texts)
        for entry in entries:
            passages = given if entry.passages == GOLD else found
            if passages is None:
                continue
            asked = _asked(entry, passages, config.seed)
            if not asked:
                yield NotComputed(name, language, system.label, entry.label, "no passage says the answer of a question")
                continue
            part, own, mine = [questions[i] for i in asked], [texts[i] for i in asked], [passages[i] for i in asked]
            answers = replace(steps, questions=part).answered(readers[entry.label], own, mine)
            hits = [one.found > 0 for one in mine]
            yield Answered(name, language, system.label, entry.label, part, answers, own, hits)


def _asked(entry: ReaderEntry, passages: Sequence[Found], seed: int) -> list[int]:
    """The places of the questions that a reader is asked: with gold passages those that have one; then its sample.

    The sample depends on the questions alone: every system is asked the same ones.
    """
    places = [i for i, found in enumerate(passages) if entry.passages != GOLD or found.passages]
    drawn = np.random.default_rng(seed).permutation(len(places))[: entry.sample]
    return [places[i] for i in sorted(drawn.tolist())]


def english(system: System, steps: Steps, parts: Parts) -> list[str]:
    """Each question as the system puts it.  Not to be had: a SqaError that says why."""
    questions: list[OpenQuestion] = steps.questions
    if system.question == "source":
        return [question.text for question in questions]
    if system.question == "human":
        missing = sum(question.translation is None for question in questions)
        if missing:
            raise DataError(f"{missing} of {len(questions)} questions have no human translation")
        return [question.translation or "" for question in questions]
    if system.question == "trained":
        from experiments.paper import xor_translator

        model = xor_translator.model(questions[0].language, steps.store.root)
        system = replace(system, question="translated", translator={"name": "pbmt", "model": str(model)})
    return steps.translated(system.component(), parts)


def _line(error: SqaError) -> str:
    return " ".join(str(error).split())
